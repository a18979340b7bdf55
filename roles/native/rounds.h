/* The rounds of a run: contributions up, the total down, the same update everywhere. */
#ifndef ROUNDS_H
#define ROUNDS_H

#include <stdint.h>

#include "binding.h"
#include "learner.h"

/* Rounds start + 1 to target, with their publications; `total` is the last round's. */
void rounds_train(const struct binding *binding, uint64_t start, double total[COMBINED_WORDS]);

/* One round at version `start` without an update: nothing is published. */
void rounds_evaluate(uint64_t start, double total[COMBINED_WORDS]);

#endif
