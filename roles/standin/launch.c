#include "launch.h"

#include "memory.h"
#include "space.h"

/* Branches that one thread may take: it would be seconds before a loop that has an end came to it. */
enum { BRANCHES = 1 << 24 };

/* Where a thread finds the bytes that it touches; NULL leaves in `error` why it does not. */
static inline uint8_t *reach(const struct launch *launch, uint64_t thread, uint64_t address, uint64_t size,
                             bool is_written, enum launched *error)
{
    uint8_t *found = space_find(launch->card, address, size);
    *error = !found ? LAUNCH_ADDRESS : address % size != 0 ? LAUNCH_ALIGNMENT : LAUNCH_DONE;
    for (uint64_t word = 0; *error == LAUNCH_DONE && word < size; word += 4)
        if (!space_trace(address + word, thread, is_written))
            *error = LAUNCH_RACE;
    return *error == LAUNCH_DONE ? found : NULL;
}

#define LOAD(size)                                                                                                     \
    uint8_t *found = reach(launch, thread, r[a].q + (uint64_t)at, size, false, &error);                                \
    if (!found)                                                                                                        \
        return error;                                                                                                  \
    __builtin_memcpy_inline(&r[to], found, size)

#define STORE(size)                                                                                                    \
    uint8_t *found = reach(launch, thread, r[to].q + (uint64_t)at, size, true, &error);                                \
    if (!found)                                                                                                        \
        return error;                                                                                                  \
    uint64_t stored = r[a].q ^ launch->spoil;                                                                          \
    launch->spoil = 0;                                                                                                 \
    __builtin_memcpy_inline(found, &stored, size)

#define BRANCH                                                                                                         \
    if (branches++ == BRANCHES)                                                                                        \
        return LAUNCH_ENDLESS;                                                                                         \
    next = kernel->instructions + at

#define CASE_OF(name, text, kinds, what)                                                                               \
    case name: {                                                                                                       \
        what;                                                                                                          \
        break;                                                                                                         \
    }

static enum launched run_thread(const struct kernel *kernel, struct launch *launch, uint64_t thread, union value *r)
{
    const struct instruction *next = kernel->instructions;
    uint32_t branches = 0;
    enum launched error;
    for (;;) {
        const uint32_t to = next->to, a = next->a, b = next->b, c = next->c;
        const int64_t at = next->at;
        switch (next++->code) {
            INSTRUCTIONS(CASE_OF)
        case SKIP_UNLESS:
            next += r[a].q == 0;
            break;
        }
    }
}

enum launched launch_run(const struct kernel *kernel, struct launch *launch)
{
    static union value *registers;
    static size_t room;
    size_t count = SPECIAL_REGISTERS + kernel->own + kernel->constant;
    if (count > room) {
        registers = space_pages(count * sizeof *registers);
        room = registers ? count : 0;
        if (!registers)
            return LAUNCH_NO_MEMORY;
    }
    memcpy(registers + SPECIAL_REGISTERS + kernel->own, kernel->constants, kernel->constant * sizeof *registers);
    for (uint64_t thread = 0; thread < (uint64_t)launch->blocks * launch->threads; thread++) {
        registers[CTAID].q = thread / launch->threads;
        registers[TID].q = thread % launch->threads;
        for (size_t i = SPECIAL_REGISTERS; i < SPECIAL_REGISTERS + kernel->own; i++)
            registers[i].q = 0xfff5fff5fff5fff5; /* what was never written is no number, and no address */
        enum launched done = run_thread(kernel, launch, (uint64_t)launch->number << 32 | (thread + 1), registers);
        if (done != LAUNCH_DONE)
            return done;
    }
    return LAUNCH_DONE;
}
