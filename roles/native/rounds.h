/* The rounds of a run: parameters to all, contributions up, totals down, the update, and what all hold to all. */
#ifndef ROUNDS_H
#define ROUNDS_H

#include <stdint.h>

#include "binding.h"
#include "learner.h"

/* Rounds start + 1 to target, with their publications; the results in `total` are the last round's. */
void rounds_train(const struct binding *binding, uint64_t start, word total[COMBINED_WORDS]);

/* One round at version `start` without an update: nothing is published. */
void rounds_evaluate(uint64_t start, word total[COMBINED_WORDS]);

#endif
