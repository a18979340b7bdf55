/* What the names in a kernel mean: its registers, its parameters, the places in it. */
#ifndef NAMES_H
#define NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "words.h"

enum { NAMES_PARAMETERS = 16 };

enum type { TYPE_PRED, TYPE_B32, TYPE_B64, TYPE_F32, TYPE_F64 };

/* Registers of one declaration: `r<7>` are r0 to r6. */
struct registers {
    struct word stem;
    uint64_t count;
    uint32_t first;
    enum type type;
};

struct place {
    struct word name;
    int64_t at;
};

struct names {
    struct registers *registers;
    size_t register_count;
    struct place *places;
    size_t place_count;
    struct word parameters[NAMES_PARAMETERS];
    size_t parameter_count;
};

/* False: there is no such type of a register. */
bool names_type(struct word word, enum type *type);

/* False: the name is taken, or is no stem. There must be room. */
bool names_add_registers(struct names *names, struct registers declared);
bool names_add_place(struct names *names, struct word name, int64_t at);

/* Where a register lies, and its type; false if nothing declares it. */
bool names_register(const struct names *names, struct word word, uint32_t *at, enum type *type);

/* The special register of this name that every thread begins with: its place, or -1. */
int names_special(struct word word);

/* The number of a parameter, where a label stands; -1: there is none of the name. */
int names_parameter(const struct names *names, struct word word);
int64_t names_place(const struct names *names, struct word word);

#endif
