/* A unit under test: reads its input from stdin and says its findings on stdout. Compiled with every undefined
 * behaviour trapped, so that a fault ends it by a signal. */
#ifndef UNIT_H
#define UNIT_H

#include "files.h"
#include "memory.h"
#include "refuse.h"
#include "system.h"
#include "text.h"

enum { STDIN = 0, STDOUT = 1, INPUT_BYTES = 1 << 20 };

static uint8_t unit_input[INPUT_BYTES + 1];
static char unit_output[INPUT_BYTES];

static inline size_t unit_read(void)
{
    size_t used = 0;
    long got;
    while ((got = system_read(STDIN, unit_input + used, INPUT_BYTES - used)) > 0)
        used += (size_t)got;
    unit_input[used] = 0;
    return used;
}

static inline void unit_say(const struct text *text)
{
    files_write(STDOUT, text->bytes, text->used);
}

static void unit(size_t size, struct text *out);

__attribute__((noreturn, used)) void start_main(const uintptr_t *stack)
{
    struct text out = {unit_output, sizeof unit_output, 0};
    (void)stack;
    unit(unit_read(), &out);
    unit_say(&out);
    system_exit(0);
}

MACHINE_ENTRY

#endif
