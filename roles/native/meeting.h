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

/* Roles may dial from now on; a port of 0 is any that is free. */
void meeting_listen(const struct endpoint *endpoint);

/* Where `meeting_listen` listens. */
struct endpoint meeting_place(void);

/* A socket to the role that listens there. What is wrong with its hello is said by `meeting_gather`. */
int meeting_join(const struct endpoint *endpoint, uint32_t role, const struct hello *own, struct deadline deadline);

/* A socket for each of `count` roles from `first` on, in role order: those that are below 0 are waited for. The
 * others are watched meanwhile, and so is `watched`, the parent's, or -1. With no roles, what was wrong is said. */
void meeting_gather(int *sockets, uint32_t first, uint32_t count, int watched, const struct hello *own,
                    struct deadline deadline);

#endif
