#include "checkpoint.h"

__attribute__((section(".orch.plan"), used, aligned(16))) const struct identity identity = {
    PLAN_DIGEST, SYSTEM_DIGEST, ROLE_INDEX, ROLE_NAME};

char checkpoint_manifest[MANIFEST_BYTES + 1];

static char shard_header_text[SHARD_HEADER_BYTES];

struct text checkpoint_header(const struct region regions[FIELD_COUNT], const struct capture *capture)
{
    static const struct shard_form form = {FIELD_NAMES, FIELD_COUNT, HEADER_ORDER, WORD_DTYPE, sizeof(word)};
    struct text text = {shard_header_text, sizeof shard_header_text, 0};
    shard_header(&text, &form, regions, capture);
    return text;
}

uint64_t checkpoint_words(const struct region regions[FIELD_COUNT])
{
    uint64_t words = 0;
    for (uint32_t field = 0; field < FIELD_COUNT; field++)
        words += regions[field].count;
    return words;
}
