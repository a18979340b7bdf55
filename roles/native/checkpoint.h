/* What the writer and the reader of checkpoints share: names, the header of a shard, room for a manifest. */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H

#include <stdint.h>

#include "plan.h"
#include "text.h"

/* What the program is of, as its file says it in a section of its own. */
struct identity {
    uint8_t plan[32];
    uint8_t system[32];
    uint32_t role_index;
    char role_name[sizeof ROLE_NAME];
};

extern const struct identity identity;

/* A manifest's text, in the order that it is written and read:
 * HEAD part,part,... SHARDS shard,shard,... TAIL, where a shard is SHARD_HEAD region,region,... SHARD_TAIL.
 * The root's names the whole set, a part one subtree of the combine tree; a part's own parts are of its children. */
#define ROOT_HEAD                                                                                              \
    "{\"capture\":{\"epoch\":%u,\"owners\":{\"count\":%u},\"plan\":\"%h\",\"run\":\"%r\",\"time_ms\":%u},"          \
    "\"manifests\":["
#define ROOT_SHARDS "],\"schema\":\"orch-checkpoint/v1\",\"shards\":["
#define ROOT_TAIL "],\"state\":\"%h\",\"system\":\"%h\",\"version\":%u}"
#define PART_HEAD "{\"capture\":{\"epoch\":%u,\"plan\":\"%h\",\"run\":\"%r\"},\"manifests\":["
#define PART_SHARDS "],\"schema\":\"orch-checkpoint-part/v1\",\"shards\":["
#define PART_TAIL "],\"version\":%u}"
#define MANIFEST_FILE "{\"file\":\"%n\",\"sha256\":\"%h\",\"size\":%u}"
#define MANIFEST_SHARD_HEAD "{\"file\":\"%n\",\"regions\":["
#define MANIFEST_REGION "{\"count\":%u,\"field\":\"%n\",\"first\":%u,\"stride\":%u}"
#define MANIFEST_SHARD_TAIL "],\"sha256\":\"%h\",\"size\":%u}"

/* Read at the beginning of a run, written at its publications. */
extern char checkpoint_manifest[MANIFEST_BYTES + 1];

/* The header of the shard with these regions; valid until the next call. */
struct text checkpoint_header(const struct region regions[FIELD_COUNT], const struct capture *capture);

/* Words that the regions hold. */
uint64_t checkpoint_words(const struct region regions[FIELD_COUNT]);

#endif
