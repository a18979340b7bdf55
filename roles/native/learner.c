#include "learner.h"

#include "clock.h"
#include "files.h"
#include "memory.h"
#include "refuse.h"
#include "sha256.h"

enum { SAMPLE_FILE_WORDS = ROLE_SAMPLES * SAMPLE_WORDS, SAMPLES_PER_LOOK_AT_THE_CLOCK = 256 };

/* One word more where a role may have none: it has an array too. */
static word state[HELD_WORDS + 1];
static word samples[SAMPLE_FILE_WORDS + 1];
#if !IS_DEVICE
static word terms[TERM_WORDS + 1];
#if FORWARD_COUNT
static word sums[TERM_WORDS + 1]; /* over all samples, of what is this role's own */
#endif
#endif

uint64_t learner_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

void learner_check_finite(const word *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((learner_bits((double)words[i]) >> 52 & 0x7ff) == 0x7ff)
            refuse("non-finite");
}

void learner_load_samples(const uint8_t digest[32])
{
    enum { SIZE = SAMPLE_FILE_WORDS * sizeof(word) };
    uint8_t found[32];
    uint64_t size = 0;
    int file = files_open("samples", &size);
    if (file < 0 || size != SIZE || !files_read(file, samples, SIZE))
        refuse("data-chunk");
    sha256_of(samples, SIZE, found);
    if (memcmp(found, digest, sizeof found) != 0)
        refuse("data-chunk");
    learner_check_finite(samples, SAMPLE_FILE_WORDS);
}

const word *learner_samples(void)
{
    return samples;
}

void learner_begin(void)
{
    word *next = state;
    for (size_t run = 0; run < sizeof INITIAL / sizeof *INITIAL; run++)
        for (uint64_t i = 0; i < INITIAL[run].count; i++)
            *next++ = INITIAL[run].value;
}

word *learner_field(uint32_t field)
{
    return state + FIELDS[field].place;
}

word *learner_word(uint32_t field, uint64_t coordinate)
{
    const struct region *held = &FIELDS[field].held;
    uint64_t at = coordinate - held->first;
    if (coordinate < held->first || at % held->stride != 0 || at / held->stride >= held->count)
        return NULL;
    return learner_field(field) + at / held->stride;
}

void learner_check_state(void)
{
    learner_check_finite(state, HELD_WORDS);
}

#if !IS_DEVICE

/* A sample's words. Now and then a look at the clock. */
static const word *sample(size_t number)
{
    if (number % SAMPLES_PER_LOOK_AT_THE_CLOCK == 0)
        clock_check_run();
    return samples + number * SAMPLE_WORDS;
}

/* Adds up the terms of all samples, in their order. */
static void add_terms(const word *parameters, const word *forward, word *total)
{
    for (size_t i = 0; i < ROLE_SAMPLES; i++) {
        plan_terms(parameters, sample(i), forward + i, terms);
        for (size_t at = 0; at < TERM_WORDS; at++)
            total[at] += terms[at];
    }
}

void learner_contribute(word *parameters, word combined[COMBINED_WORDS])
{
    memset(combined, 0, COMBINED_WORDS * sizeof(word));
#if FORWARD_COUNT
    for (size_t i = 0; i < ROLE_SAMPLES; i++)
        plan_forward(parameters, sample(i), combined + i);
#else
    add_terms(parameters, combined, combined);
#endif
    combined[MASS_WORD] = (word)ROLE_MASS;
}

#endif

void learner_check_total(const word total[TOTAL_WORDS])
{
    learner_check_finite(total, TOTAL_WORDS);
}

#if !IS_DEVICE
#if FORWARD_COUNT

void learner_complete(word total[TOTAL_WORDS])
{
    memset(sums, 0, sizeof sums);
    add_terms(learner_field(0), total, sums);
    learner_check_finite(sums, TERM_WORDS);
    memcpy(total + OWN_MEAN_WORDS, sums + SUM_WORDS, RESULT_WORDS * sizeof(word));
}

static void update(word total[TOTAL_WORDS])
{
    for (size_t i = 0; i < SUM_WORDS; i++)
        sums[i] /= total[TOTAL_MASS];
    plan_update(state, sums);
}

#else

void learner_complete(word total[TOTAL_WORDS])
{
    (void)total;
}

static void update(word total[TOTAL_WORDS])
{
#if IS_LOCAL
    (void)total;
    for (size_t i = 0; i < ROLE_SAMPLES; i++)
        plan_local(state, sample(i));
#else
    for (size_t i = 0; i < OWN_MEAN_WORDS; i++)
        total[i] /= total[TOTAL_MASS];
    plan_update(state, total);
#endif
}

#endif

void learner_update(word total[TOTAL_WORDS])
{
    update(total);
    learner_check_state();
}

#endif

void learner_digest(uint8_t digest[32])
{
    sha256_of(state, HELD_WORDS * sizeof(word), digest);
}

void learner_replicated_digest(uint8_t digest[32])
{
    struct sha256 hash;
    sha256_begin(&hash);
    for (uint32_t field = 0; field < FIELD_COUNT; field++)
        if (FIELDS[field].holding != PARTITIONED)
            sha256_add(&hash, learner_field(field), FIELDS[field].size * sizeof(word));
    sha256_end(&hash, digest);
}
