/* The system's own words: state, samples, one owner's sums. Knows no peer and no file but its samples. */
#ifndef LEARNER_H
#define LEARNER_H

#include <stdint.h>

#include "plan.h"

/* One owner's words on the wire: means' sums, results' sums, and how many samples they are of. */
enum { MASS_WORD = MEAN_WORDS + RESULT_WORDS, COMBINED_WORDS = MASS_WORD + 1 };

/* Reads `samples`. Refuses `data-chunk` if it is not the bound file, `non-finite` if a word is. */
void learner_load_samples(const uint8_t digest[32]);

/* The state before the first update. */
void learner_begin(void);

/* Words [first, first + count) of a field, to be written by a restore. */
double *learner_words(uint32_t field, uint64_t first);

/* Refuses `non-finite` if a word of the state is. */
void learner_check_state(void);

/* Sums the terms of the own samples, in their order. */
void learner_contribute(double combined[COMBINED_WORDS]);

/* Refuses `non-finite` if a word is. */
void learner_check_total(const double total[COMBINED_WORDS]);

/* Means of the total, then the update. Refuses `non-finite` if the new state is. */
void learner_update(const double total[COMBINED_WORDS]);

void learner_digest(uint8_t digest[32]);

/* A word's bits. */
uint64_t learner_bits(double word);

#endif
