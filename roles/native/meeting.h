/* How roles find each other: the root listens and gathers, every other dials the root.
 *
 * The root's port is open to whoever can reach it: what does not begin like a frame, or does not know the
 * launch's secret, is not a role and is dropped without a word, and who says nothing holds nobody up. */
#ifndef MEETING_H
#define MEETING_H

#include "clock.h"
#include "hello.h"

/* For the root: a socket for each other role, in role order. */
void meeting_gather(int *sockets, const struct endpoint *endpoint, const struct hello *own, struct deadline deadline);

/* For every other role: a socket to the root. */
int meeting_join(const struct endpoint *endpoint, const struct hello *own, struct deadline deadline);

#endif
