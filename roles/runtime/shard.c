#include "shard.h"

#include "memory.h"

#define METADATA                                                                                               \
    "\"__metadata__\":{\"epoch\":\"%u\",\"format\":\"orch-checkpoint/v1\",\"run\":\"%r\",\"system\":\"%h\","        \
    "\"version\":\"%u\"}"

enum { LENGTH_BYTES = 8 };

static void put_tensor(struct text *text, const struct shard_form *form, const struct region *regions, size_t field)
{
    const struct region *region = regions + field;
    uint64_t before = 0;
    uint64_t end = region->first + (region->count - 1) * region->stride + 1;
    for (size_t i = 0; i < field; i++)
        before += regions[i].count;
    text_put(text, "\"%n[%u:%u", form->fields[field], region->first, end);
    if (region->stride > 1)
        text_put(text, ":%u", region->stride);
    text_put(text, "]\":{\"data_offsets\":[%u,%u],\"dtype\":\"%n\",\"shape\":[%u]}", before * form->word_bytes,
             (before + region->count) * form->word_bytes, form->dtype, region->count);
}

void shard_header(struct text *text, const struct shard_form *form, const struct region *regions,
                  const struct capture *capture)
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
            text_put(text, METADATA, capture->epoch, capture->run, capture->system, capture->version);
        else
            put_tensor(text, form, regions, field);
    }
    text_put(text, "}");
    while ((text->used - start) % LENGTH_BYTES != 0)
        text_put(text, " ");
    uint64_t length = text->used - start - LENGTH_BYTES;
    memcpy(text->bytes + start, &length, LENGTH_BYTES);
}

bool shard_capture(const char *header, struct capture *capture)
{
    for (; *header != 0; header++) {
        struct scan scan = {header, false};
        scan_form(&scan, METADATA, &capture->epoch, capture->run, capture->system, &capture->version);
        if (!scan.failed)
            return true;
    }
    return false;
}
