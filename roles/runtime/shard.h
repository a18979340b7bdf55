/* The header of a shard: a safetensors file that holds regions of fields as little-endian words.
 *
 * A shard has exactly one right header for what it holds and the capture that it is of, so reading one is writing
 * it again and comparing. */
#ifndef SHARD_H
#define SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

/* Coordinates `first`, `first` + `stride`, ... of a field. The stride of one coordinate, or none, is 1. */
struct region {
    uint64_t first;
    uint64_t stride;
    uint64_t count; /* 0: nothing of the field */
};

struct shard_form {
    const char *const *fields; /* their names */
    size_t count;
    /* count + 1 places of the header's keys in their order: a field's index, or `count` for __metadata__ */
    const uint32_t *order;
    const char *dtype;
    uint64_t word_bytes;
};

/* What all pieces of one publication have in common. */
struct capture {
    uint8_t system[32];
    uint8_t run[16];
    uint64_t epoch;
    uint64_t version;
};

/* Writes the 8-byte length and the padded JSON. `regions` has one entry per field. */
void shard_header(struct text *text, const struct shard_form *form, const struct region *regions,
                  const struct capture *capture);

/* The first capture that a header's text says it is of; false if it says none. The text ends in a zero byte. */
bool shard_capture(const char *header, struct capture *capture);

#endif
