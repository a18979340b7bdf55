#include "clock.h"
#include "device.h"
#include "learner.h"
#include "memory.h"
#include "refuse.h"
#include "system.h"

/* In the order in which every kernel takes their addresses. */
enum { STATE, SAMPLES, PARAMETERS, WORK, SUMS, TOTAL, BUFFER_COUNT };

enum { REPLICA_WORDS = PARAMETERS_PARTITIONED ? PARAMETER_WORDS : 0 };

static const uint64_t buffer_words[BUFFER_COUNT] = {
    HELD_WORDS, (uint64_t)ROLE_SAMPLES * SAMPLE_WORDS, REPLICA_WORDS, WORK_WORDS, TERM_WORDS, TOTAL_WORDS,
};
static uint64_t buffers[BUFFER_COUNT];

static struct {
    void *forward;
    void *terms;
    void *sums;
    void *update[UPDATE_KERNELS + 1];
} kernels;

static bool is_shadowed;

static void write(int buffer, const word *words, uint64_t count)
{
    device_write(buffers[buffer], words, count * sizeof(word));
}

static void read(word *words, int buffer, uint64_t count)
{
    device_read(words, buffers[buffer], count * sizeof(word));
}

/* Of a kernel without threads there is none. */
static void *find(const char *kernel, uint64_t threads)
{
    return threads > 0 ? device_kernel(kernel) : NULL;
}

static void launch(void *kernel, uint64_t threads)
{
    void *parameters[BUFFER_COUNT];
    for (int i = 0; i < BUFFER_COUNT; i++)
        parameters[i] = &buffers[i];
    clock_check_run();
    device_launch(kernel, threads, parameters);
}

/* Writes the text that a byte stands for; gives the place behind it. */
static char *unpack(char *to, uint8_t byte)
{
    if (byte >= FIRST_PAIR)
        return unpack(unpack(to, PTX_PAIRS[byte - FIRST_PAIR][0]), PTX_PAIRS[byte - FIRST_PAIR][1]);
    *to = (char)byte;
    return to + 1;
}

void learner_settle(const struct binding *binding)
{
    static char ptx[PTX_BYTES + 1];
    static const struct device_profile profile = {
        DEVICE_PRODUCT, {DEVICE_CAPABILITY_MAJOR, DEVICE_CAPABILITY_MINOR}, DEVICE_DRIVERS, ptx, LEASE_BYTES,
    };
    char *end = ptx;
    for (size_t i = 0; i < sizeof PACKED_PTX; i++)
        end = unpack(end, PACKED_PTX[i]);
    device_open(binding, &profile);
    if (!machine_float_is_plain()) /* libraries may change it when they are loaded, and sums are combined here */
        refuse("float-environment");
    kernels.forward = find("forward", FORWARD_THREADS);
    kernels.terms = find("terms", TERMS_THREADS);
    kernels.sums = find("sums", SUMS_THREADS);
    for (uint32_t i = 0; i < UPDATE_KERNELS; i++)
        kernels.update[i] = find(UPDATE_NAMES[i], UPDATE_THREADS[i]);
    for (int i = 0; i < BUFFER_COUNT; i++)
        buffers[i] = device_allocate(buffer_words[i] * sizeof(word));
    if (!PARAMETERS_PARTITIONED)
        buffers[PARAMETERS] = buffers[STATE]; /* they are the first words of it, and read where they lie */
    is_shadowed = (binding->device & DEVICE_SHADOWED) != 0;
    write(STATE, learner_field(0), HELD_WORDS);
    write(SAMPLES, learner_samples(), buffer_words[SAMPLES]);
}

/* Words that are not what they were, nor each other: of any million of them, all finite and between 1 and 256. */
static void spoil(word *words, uint64_t count, uint64_t first)
{
    enum { IS_WIDE = sizeof(word) == 8, FRACTION = IS_WIDE ? 52 : 23, SPREAD = FRACTION + 3 };
    const uint64_t one = (uint64_t)(IS_WIDE ? 1023 : 127) << FRACTION;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t bits = one + ((first + i) * 0x9e3779b97f4a7c15 & (((uint64_t)1 << SPREAD) - 1));
        bits ^= memcmp(words + i, &bits, sizeof(word)) == 0;
        memcpy(words + i, &bits, sizeof(word));
    }
}

/* The control: from here until a capture nothing that the host has of state and parameters is what it was. */
static void spoil_copies(word *parameters)
{
    static uint64_t used;
    spoil(learner_field(0), HELD_WORDS, used);
    used += HELD_WORDS;
    if (PARAMETERS_PARTITIONED)
        spoil(parameters, PARAMETER_WORDS, used);
    used += REPLICA_WORDS;
}

/* The sums over the own samples of what is this role's. */
static void sum_up(word *into)
{
    launch(kernels.terms, TERMS_THREADS);
    launch(kernels.sums, SUMS_THREADS);
    if (SUMS_THREADS > 0)
        read(into, SUMS, TERM_WORDS);
}

void learner_contribute(word *parameters, word combined[COMBINED_WORDS])
{
    memset(combined, 0, COMBINED_WORDS * sizeof(word));
    write(PARAMETERS, parameters, REPLICA_WORDS);
    if (is_shadowed)
        spoil_copies(parameters);
#if FORWARD_COUNT
    launch(kernels.forward, FORWARD_THREADS);
    read(combined, TOTAL, MEAN_WORDS);
#else
    sum_up(combined);
#endif
    combined[MASS_WORD] = (word)ROLE_MASS;
}

void learner_complete(word total[TOTAL_WORDS])
{
#if FORWARD_COUNT
    static word sums[TERM_WORDS + 1];
    write(TOTAL, total, TOTAL_WORDS);
    sum_up(sums);
    learner_check_finite(sums, TERM_WORDS);
    memcpy(total + OWN_MEAN_WORDS, sums + SUM_WORDS, RESULT_WORDS * sizeof(word));
#else
    (void)total;
#endif
}

void learner_capture(void)
{
    read(learner_field(0), STATE, HELD_WORDS);
}

static void update(const word total[TOTAL_WORDS])
{
    if (!FORWARD_COUNT && !IS_LOCAL)
        write(TOTAL, total, TOTAL_WORDS);
    for (uint32_t i = 0; i < UPDATE_KERNELS; i++)
        launch(kernels.update[i], UPDATE_THREADS[i]);
}

void learner_update(word total[TOTAL_WORDS])
{
    update(total);
    learner_capture();
    learner_check_state();
}

void learner_renew(uint32_t field)
{
    uint64_t place = FIELDS[field].place * sizeof(word);
    device_write(buffers[STATE] + place, learner_field(field), FIELDS[field].size * sizeof(word));
}

void learner_begin_line(struct text *line)
{
    text_put(line, "{\"device\":");
    device_say(line, DEVICE_PRODUCT_JSON);
    text_put(line, ",");
}
