/* The combine: every word's sum over all roles, in the declared order.
 *
 * A role's subtotal of a word is its own contribution, then its children's subtotals added one by one in role order;
 * the total is the root's. Who adds what when is free, the order is not. Knows what words there are, not what they
 * mean. */
#ifndef COMBINE_H
#define COMBINE_H

#include <stdint.h>

#include "learner.h"

/* Own sums in, totals out, in place: of TOTAL_WORDS words, those of the coordinates that this role receives, then the
 * results and the mass. Refuses `peer-lost`, `round-deadline` and by frame label. */
void combine(uint64_t round, word words[COMBINED_WORDS]);

#endif
