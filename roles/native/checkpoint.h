/* What the writer and the reader of checkpoints share: names, the header of a shard, room for a manifest. */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H

#include <stdint.h>

#include "plan.h"
#include "text.h"

extern const uint8_t plan_digest[32];
extern const uint8_t system_digest[32];

/* Read at the beginning of a run, written at its publications. */
extern char checkpoint_manifest[MANIFEST_BYTES];

/* The header of the shard with these regions; valid until the next call. */
struct text checkpoint_header(const struct region regions[FIELD_COUNT], uint64_t version);

/* Words that the regions hold. */
uint64_t checkpoint_words(const struct region regions[FIELD_COUNT]);

#endif
