/* The system's own words: what this role holds of the state, its samples, its sums. Knows no peer and no file but its
 * samples. */
#ifndef LEARNER_H
#define LEARNER_H

#include <stdint.h>

#include "binding.h"
#include "plan.h"
#include "text.h"

/* One owner's sums: the means', the results', and how many samples they are of. */
enum { MASS_WORD = MEAN_WORDS + RESULT_WORDS, COMBINED_WORDS = MASS_WORD + 1 };

/* The totals that this role receives, in the same order. */
enum { TOTAL_MASS = OWN_MEAN_WORDS + RESULT_WORDS, TOTAL_WORDS = TOTAL_MASS + 1 };

/* Reads `samples`. Refuses `data-chunk` if it is not the bound file, `non-finite` if a word is. */
void learner_load_samples(const uint8_t digest[32]);

/* Its words, sample by sample. */
const word *learner_samples(void);

/* The state before the first update. */
void learner_begin(void);

/* The words that this role holds of a field, in coordinate order. */
word *learner_field(uint32_t field);

/* The place of one coordinate, or NULL if this role does not hold it. */
word *learner_word(uint32_t field, uint64_t coordinate);

/* Refuses `non-finite` if a word is; of the state if one of its is. */
void learner_check_finite(const word *words, size_t count);
void learner_check_state(void);

/* Sums the terms of the own samples at these parameters, in sample order. Only the host-shadow control of a device role
 * writes to the parameters, which are a copy then. */
void learner_contribute(word *parameters, word combined[COMBINED_WORDS]);

/* Refuses `non-finite` if a word is. */
void learner_check_total(const word total[TOTAL_WORDS]);

/* Of owners of columns, which have every sample's forward sums now: the sums over samples of what is this role's, and
 * the results into the total. Refuses `non-finite` if a sum is. */
void learner_complete(word total[TOTAL_WORDS]);

/* Turns the sums of the total into means, then updates what is this role's to compute. Refuses `non-finite` if the
 * new state is. */
void learner_update(word total[TOTAL_WORDS]);

/* Of all words that this role holds, and of those that every role holds alike. */
void learner_digest(uint8_t digest[32]);
void learner_replicated_digest(uint8_t digest[32]);

#if IS_DEVICE

/* State, samples and sums of a device role are in its card's memory. What the host has of the state is a copy, right
 * from a capture until the next round contributes. */

/* Takes the bound card, and moves state and samples there. Refuses as device.h does. */
void learner_settle(const struct binding *binding);

/* The whole state from the card. An update captures it by itself. */
void learner_capture(void);

/* A field's words to the card: others have computed them. */
void learner_renew(uint32_t field);

/* Begins the line of results. */
void learner_begin_line(struct text *line);
#define LINE_BEGINS ""

#else

static inline void learner_settle(const struct binding *binding)
{
    (void)binding;
}

static inline void learner_capture(void)
{
}

static inline void learner_renew(uint32_t field)
{
    (void)field;
}

static inline void learner_begin_line(struct text *line)
{
    (void)line;
}
#define LINE_BEGINS "{"

#endif

/* A word's bits; a narrower one is widened first, which is exact. */
uint64_t learner_bits(double value);

#endif
