/* Input: 8-byte words: version, then first, stride and count of the regions of two fields. Output: the header. */
#include "shard.h"
#include "unit.h"

static void unit(size_t size, struct text *out)
{
    static const char *const fields[2] = {"w", "W"};
    static const uint32_t order[3] = {1, 2, 0};
    static const struct shard_form form = {fields, 2, order, "F64", 8};
    struct capture capture = {{0xab}, {0xcd}, 5, 0};
    uint64_t words[7];
    struct region regions[2];
    memcpy(words, unit_input, size < sizeof words ? size : sizeof words);
    memcpy(regions, words + 1, sizeof regions);
    capture.version = words[0];
    shard_header(out, &form, regions, &capture);
}
