/* The combine of one round: every word of the total is the sum of all roles' words, added in the plan's order.
 *
 * The order belongs to each word: S(i) = ((own_i + S(c1)) + S(c2)) + ... over the plan's tree, where role i's
 * children are i * fan_out + 1 and so on (a star is the tree whose fan-out is the number of children). Which role
 * does the additions of a word is the schedule's to choose, and changes no bit. Knows sockets and frames; not how
 * roles met, and not what words mean. */
#ifndef COMBINE_H
#define COMBINE_H

#include <stdint.h>

#include "clock.h"
#include "frame.h"
#include "plan.h"

/* Up to so many roles speak to each other directly; a tree's node may have as many children, less one. */
enum { COMBINE_ROLES = 16 };

/* Who adds: everybody everything, from everybody's words; each role its slice, which it then sends to all; or the
 * root everything, which it sends to all. */
enum schedule { SCHEDULE_GATHER, SCHEDULE_SLICES, SCHEDULE_ROOT };

/* Who takes part, the same in all rounds. */
struct combine {
    const int *sockets;  /* to every role, in their order; the own one is not looked at */
    uint32_t role;
    uint32_t count;      /* of roles */
    uint32_t fan_out;
    bool may_leave;      /* a role that has its total may end */
    struct frame frame;  /* what all frames of the run have in common */
    word *inbox;         /* room for (count - 1) * inbox_words */
    uint64_t inbox_words;
};

/* The schedule that is fastest for as many words. */
enum schedule combine_schedule(const struct combine *combine, uint64_t words);

/* From the own `words` to the total, in place. Refuses `peer-lost`, by frame label, or by the deadline's. */
void combine_round(const struct combine *combine, enum schedule schedule, uint64_t round, word *words,
                   uint64_t count, struct deadline deadline);

#endif
