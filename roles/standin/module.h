/* A module: what a PTX text says, as instructions that can be done at once.
 *
 * Only what orch renders is known; a text with anything else in it is refused whole. */
#ifndef MODULE_H
#define MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "instructions.h"
#include "names.h"
#include "words.h"

/* Registers that a thread begins with, before its own. */
enum { TID, CTAID, SPECIAL_REGISTERS };

union value {
    uint64_t q;
    int64_t s;
    uint32_t w;
    int32_t i;
    double d;
    float f;
};

/* `to`, `a`, `b` and `c` are places among the registers; `at` is an offset, a parameter, or where to go on. */
struct instruction {
    enum code code;
    uint32_t to;
    uint32_t a;
    uint32_t b;
    uint32_t c;
    int64_t at;
};

/* Registers of a kernel: special ones, its own, and then one for each constant, which nothing writes. */
struct kernel {
    struct word name;
    uint64_t parameters;
    const struct instruction *instructions;
    const union value *constants;
    uint32_t own;      /* registers */
    uint32_t constant; /* registers */
};

struct module {
    uint64_t version; /* of the language, 10 x major + minor */
    uint64_t target;  /* 10 x compute capability */
    struct kernel *kernels;
    size_t kernel_count;
};

enum loaded { LOADED, LOAD_REFUSED, LOAD_NO_MEMORY };

/* `text` ends in a zero byte, and the module points into it. */
enum loaded module_load(const char *text, struct module *module);

#endif
