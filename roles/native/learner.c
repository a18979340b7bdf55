#include "learner.h"

#include "clock.h"
#include "files.h"
#include "memory.h"
#include "refuse.h"
#include "sha256.h"

enum { SAMPLE_FILE_WORDS = ROLE_SAMPLES * SAMPLE_WORDS, SAMPLES_PER_LOOK_AT_THE_CLOCK = 256 };

static double state[STATE_WORDS];
static double samples[SAMPLE_FILE_WORDS + 1]; /* one more: an owner of no samples has an array too */
static double terms[MASS_WORD];
static double mean[MEAN_WORDS + 1];

uint64_t learner_bits(double word)
{
    uint64_t bits;
    memcpy(&bits, &word, sizeof bits);
    return bits;
}

static void check_finite(const double *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((learner_bits(words[i]) >> 52 & 0x7ff) == 0x7ff)
            refuse("non-finite");
}

void learner_load_samples(const uint8_t digest[32])
{
    enum { SIZE = SAMPLE_FILE_WORDS * sizeof(double) };
    uint8_t found[32];
    uint64_t size = 0;
    int file = files_open("samples", &size);
    if (file < 0 || size != SIZE || !files_read(file, samples, SIZE))
        refuse("data-chunk");
    sha256_of(samples, SIZE, found);
    if (memcmp(found, digest, sizeof found) != 0)
        refuse("data-chunk");
    check_finite(samples, SAMPLE_FILE_WORDS);
}

void learner_begin(void)
{
    double *word = state;
    for (size_t run = 0; run < sizeof INITIAL / sizeof *INITIAL; run++)
        for (uint64_t i = 0; i < INITIAL[run].count; i++)
            *word++ = INITIAL[run].word;
}

double *learner_words(uint32_t field, uint64_t first)
{
    return state + FIELDS[field].first + first;
}

void learner_check_state(void)
{
    check_finite(state, STATE_WORDS);
}

void learner_contribute(double combined[COMBINED_WORDS])
{
    memset(combined, 0, COMBINED_WORDS * sizeof(double));
    for (size_t i = 0; i < ROLE_SAMPLES; i++) {
        if (i % SAMPLES_PER_LOOK_AT_THE_CLOCK == 0)
            clock_check_run();
        plan_terms(state, samples + i * SAMPLE_WORDS, terms);
        for (size_t word = 0; word < MASS_WORD; word++)
            combined[word] += terms[word];
    }
    combined[MASS_WORD] = (double)ROLE_SAMPLES;
}

void learner_check_total(const double total[COMBINED_WORDS])
{
    check_finite(total, COMBINED_WORDS);
}

void learner_update(const double total[COMBINED_WORDS])
{
    for (size_t i = 0; i < MEAN_WORDS; i++)
        mean[i] = total[i] / total[MASS_WORD];
    plan_update(state, mean);
    learner_check_state();
}

void learner_digest(uint8_t digest[32])
{
    sha256_of(state, sizeof state, digest);
}
