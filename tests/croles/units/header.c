/* Input: 8-byte words: version, then first and count of the regions of two fields. Output: the header. */
#include "shard.h"
#include "unit.h"

static void unit(size_t size, struct text *out)
{
    static const struct field fields[2] = {{"w", 0, 0}, {"W", 0, 0}};
    static const uint32_t order[3] = {1, 2, 0};
    static const struct shard_form form = {fields, 2, order};
    static const uint8_t system[32] = {0xab};
    uint64_t words[5];
    struct region regions[2];
    memcpy(words, unit_input, size < sizeof words ? size : sizeof words);
    memcpy(regions, words + 1, sizeof regions);
    shard_header(out, &form, regions, system, words[0]);
}
