/* All roles' words added up among roles that are connected to each other: who adds, and what goes where.
 *
 * The order of additions belongs to each word: S(i) = ((own_i + S(c1)) + S(c2)) + ... over the plan's tree, where
 * role i's children are i * fan_out + 1 and so on (a star is the tree whose fan-out is the number of children). Which
 * role does the additions of a word is the schedule's to choose, and changes no bit. Knows sockets and frames; not
 * how roles met, and not what words mean. */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "frame.h"
#include "plan.h"

enum { MESH_ROLES = 16 }; /* so many at most are connected each to each */

/* Everybody adds everything, from everybody's words; each role adds its slice and sends it to all; or the root adds
 * everything and sends it to all. */
enum schedule { SCHEDULE_GATHER, SCHEDULE_SLICES, SCHEDULE_ROOT };

/* Who takes part, the same in all rounds. */
struct mesh {
    const int *sockets; /* to every role, in their order; the own one is not looked at */
    uint32_t role;
    uint32_t count;     /* of roles, at least 2 */
    uint32_t fan_out;
    bool is_whole;      /* each is connected to each; else only the root to all */
    bool may_leave;     /* a role that has its total may end */
    struct frame frame; /* what all frames of the run have in common */
    word *inbox;        /* room for (count - 1) * inbox_words: what has come and is not added yet */
    uint64_t inbox_words;
};

/* What is fastest for as many words. */
enum schedule schedule_for(const struct mesh *mesh, uint64_t words);

/* From the own `words` to the total, in place. Refuses `peer-lost`, by frame label, or by the deadline's. */
void schedule_run(const struct mesh *mesh, enum schedule schedule, uint64_t round, word *words, uint64_t count,
                  struct deadline deadline);

#endif
