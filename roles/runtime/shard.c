#include "shard.h"

#include "memory.h"

enum { LENGTH_BYTES = 8 };

static void put_tensor(struct text *text, const char *name, struct region region, uint64_t words_before)
{
    text_put(text, "\"%n[%u:%u]\":{\"data_offsets\":[%u,%u],\"dtype\":\"F64\",\"shape\":[%u]}", name, region.first,
             region.first + region.count, words_before * sizeof(double),
             (words_before + region.count) * sizeof(double), region.count);
}

static uint64_t words_before(const struct region *regions, size_t field)
{
    uint64_t words = 0;
    for (size_t i = 0; i < field; i++)
        words += regions[i].count;
    return words;
}

void shard_header(struct text *text, const struct shard_form *form, const struct region *regions,
                  const uint8_t system[32], uint64_t version)
{
    size_t start = text->used;
    const char *between = "        {"; /* the length stands before, once it is known */
    for (size_t place = 0; place <= form->count; place++) {
        size_t field = form->order[place];
        if (field < form->count && regions[field].count == 0)
            continue;
        text_put(text, between);
        between = ",";
        if (field == form->count)
            text_put(text, "\"__metadata__\":{\"format\":\"orch-checkpoint/v1\",\"system\":\"%h\",\"version\":\"%u\"}",
                     system, version);
        else
            put_tensor(text, form->fields[field].name, regions[field], words_before(regions, field));
    }
    text_put(text, "}");
    while ((text->used - start) % LENGTH_BYTES != 0)
        text_put(text, " ");
    uint64_t length = text->used - start - LENGTH_BYTES;
    memcpy(text->bytes + start, &length, LENGTH_BYTES);
}
