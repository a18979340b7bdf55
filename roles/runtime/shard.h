/* The header of a shard: a safetensors file that holds contiguous regions of fields as binary64 words.
 *
 * A shard has exactly one right header for the regions that it holds, so reading one is writing it again and
 * comparing. */
#ifndef SHARD_H
#define SHARD_H

#include <stddef.h>
#include <stdint.h>

#include "text.h"

struct field {
    const char *name;
    uint64_t first; /* place in the state vector */
    uint64_t size;
};

struct region {
    uint64_t first; /* within its field */
    uint64_t count; /* 0: nothing of the field */
};

struct shard_form {
    const struct field *fields;
    size_t count;
    /* count + 1 places of the header's keys in their order: a field's index, or `count` for __metadata__ */
    const uint32_t *order;
};

/* Writes the 8-byte length and the padded JSON. `regions` has one entry per field. */
void shard_header(struct text *text, const struct shard_form *form, const struct region *regions,
                  const uint8_t system[32], uint64_t version);

#endif
