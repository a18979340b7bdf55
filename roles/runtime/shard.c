#include "shard.h"

#include "memory.h"

enum { LENGTH_BYTES = 8 };

static void put_metadata(struct text *text, const uint8_t system[32], uint64_t version)
{
    text_put(text, "\"__metadata__\":{\"format\":\"orch-checkpoint/v1\",\"system\":\"");
    text_put_hex(text, system, 32);
    text_put(text, "\",\"version\":\"");
    text_put_number(text, version);
    text_put(text, "\"}");
}

static void put_tensor(struct text *text, const char *name, struct region region, uint64_t words_before)
{
    text_put(text, "\"");
    text_put(text, name);
    text_put(text, "[");
    text_put_number(text, region.first);
    text_put(text, ":");
    text_put_number(text, region.first + region.count);
    text_put(text, "]\":{\"data_offsets\":[");
    text_put_number(text, words_before * sizeof(double));
    text_put(text, ",");
    text_put_number(text, (words_before + region.count) * sizeof(double));
    text_put(text, "],\"dtype\":\"F64\",\"shape\":[");
    text_put_number(text, region.count);
    text_put(text, "]}");
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
    const char *between = "{";
    text_put(text, "        "); /* the length, once it is known */
    for (size_t place = 0; place <= form->count; place++) {
        size_t field = form->order[place];
        if (field < form->count && regions[field].count == 0)
            continue;
        text_put(text, between);
        between = ",";
        if (field == form->count)
            put_metadata(text, system, version);
        else
            put_tensor(text, form->fields[field].name, regions[field], words_before(regions, field));
    }
    text_put(text, "}");
    while ((text->used - start) % LENGTH_BYTES != 0)
        text_put(text, " ");
    memory_put_u64((uint8_t *)text->bytes + start, text->used - start - LENGTH_BYTES);
}
