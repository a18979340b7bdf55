/* How roles find each other: every role with children listens, every role but the root dials its parent.
 *
 * A listening port is open to whoever can reach it: what does not begin like a frame, or does not know the launch's
 * secret, is not a role and is dropped without a word, and who says nothing holds nobody up.
 *
 * A role greets its children once its own parent has greeted it, so the tree meets from the root down. What is wrong
 * is said when all children have come: they see their parent go, instead of dialling until their deadline. */
#ifndef MEETING_H
#define MEETING_H

#include "clock.h"
#include "hello.h"

/* Children may dial from now on. */
void meeting_listen(const struct endpoint *endpoint);

/* A socket to the parent. What is wrong with its hello is said at once by a role without children, and else by
 * `meeting_gather`. */
int meeting_join(const struct endpoint *endpoint, const struct hello *own, struct deadline deadline);

/* A socket for each child, in role order. `parent` is the parent's, which is watched meanwhile, or -1. */
void meeting_gather(int *sockets, int parent, const struct hello *own, struct deadline deadline);

#endif
