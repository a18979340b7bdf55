#include "publish.h"

#include "checkpoint.h"
#include "files.h"
#include "learner.h"
#include "memory.h"
#include "peers.h"
#include "refuse.h"
#include "sha256.h"

#define FOLDER "checkpoint"

enum { PATH_BYTES = sizeof FOLDER + NAME_BYTES + 8 };

/* What an owner tells the root. */
struct published {
    uint8_t state[32];
    uint8_t shard[32];
    uint64_t size; /* of the shard; 0: the owner has none */
};

/* What the root answers. */
enum outcome { OUTCOME_COMMITTED = 0, OUTCOME_ABANDONED = 1, OUTCOME_REPLICAS_DIFFER = 2 };

/* What a refusal now would have to take back. A child's shard is no longer its own to take back once the root
 * knows of it: the manifest may name it already. */
static struct {
    uint64_t version;
    char temporary[PATH_BYTES];
    char shard[PATH_BYTES];
    bool has_temporary;
    bool has_shard;
    bool children_wait;
} open;

static void undo(const char *label)
{
    if (open.has_temporary)
        files_remove(open.temporary);
    if (open.has_shard)
        files_remove(open.shard);
#if ROLE_INDEX == 0 && ROLE_COUNT > 1
    if (open.children_wait) {
        uint64_t outcome = label[0] == 'r' && label[1] == 'e' ? OUTCOME_REPLICAS_DIFFER : OUTCOME_ABANDONED;
        peers_tell(FRAME_COMMITTED, open.version, &outcome, sizeof outcome);
    }
#else
    (void)label;
#endif
}

static void name(char path[PATH_BYTES], uint64_t version, const char *owner, const char *ending)
{
    struct text text = {path, PATH_BYTES, 0};
    text_put(&text, FOLDER "/");
    text_put_number(&text, version);
    text_put(&text, owner);
    text_put(&text, ending);
    text_put_zero(&text);
}

static int begin(uint64_t version, const char *owner, const char *ending)
{
    name(open.temporary, version, owner, ending);
    open.has_temporary = true;
    return files_create(open.temporary);
}

static void write_shard(uint64_t version, struct published *own)
{
    struct text header = checkpoint_header(OWN_REGIONS, version);
    struct sha256 hash;
    int file = begin(version, "." ROLE_NAME, ".safetensors.tmp");
    files_write(file, header.bytes, header.used);
    sha256_begin(&hash);
    sha256_add(&hash, header.bytes, header.used);
    for (uint32_t field = 0; field < FIELD_COUNT; field++) {
        const double *words = learner_words(field, OWN_REGIONS[field].first);
        size_t size = OWN_REGIONS[field].count * sizeof(double);
        files_write(file, words, size);
        sha256_add(&hash, words, size);
    }
    sha256_end(&hash, own->shard);
    own->size = header.used + checkpoint_words(OWN_REGIONS) * sizeof(double);
    name(open.shard, version, "." ROLE_NAME, ".safetensors");
    open.has_shard = true;
    files_publish(file, open.temporary, open.shard, FOLDER);
    open.has_temporary = false;
}

#if ROLE_INDEX == 0

static void put_shard(struct text *text, uint64_t version, uint32_t role, const struct published *published)
{
    const char *between = "";
    text_put(text, "{\"file\":\"");
    text_put_number(text, version);
    text_put(text, ".");
    text_put(text, ROLE_NAMES[role]);
    text_put(text, ".safetensors\",\"regions\":[");
    for (uint32_t field = 0; field < FIELD_COUNT; field++) {
        const struct region *region = &REGIONS[role][field];
        if (region->count == 0)
            continue;
        text_put(text, between);
        text_put(text, "{\"count\":");
        text_put_number(text, region->count);
        text_put(text, ",\"field\":\"");
        text_put(text, FIELDS[field].name);
        text_put(text, "\",\"first\":");
        text_put_number(text, region->first);
        text_put(text, "}");
        between = ",";
    }
    text_put(text, "],\"sha256\":\"");
    text_put_hex(text, published->shard, 32);
    text_put(text, "\",\"size\":");
    text_put_number(text, published->size);
    text_put(text, "}");
}

static struct text manifest_of(const struct binding *binding, uint64_t version, const struct published *published)
{
    struct text text = {checkpoint_manifest, sizeof checkpoint_manifest, 0};
    const char *between = "";
    text_put(&text, "{\"capture\":{\"epoch\":");
    text_put_number(&text, binding->epoch);
    text_put(&text, ",\"owners\":[");
    for (uint32_t role = 0; role < ROLE_COUNT; role++) {
        text_put(&text, role == 0 ? "\"" : ",\"");
        text_put(&text, ROLE_NAMES[role]);
        text_put(&text, "\"");
    }
    text_put(&text, "],\"plan\":\"");
    text_put_hex(&text, plan_digest, 32);
    text_put(&text, "\",\"run\":\"");
    text_put_hex(&text, binding->run, RUN_ID_BYTES);
    text_put(&text, "\",\"time_ms\":");
    text_put_number(&text, (uint64_t)clock_wall_ms());
    text_put(&text, "},\"schema\":\"orch-checkpoint/v1\",\"shards\":[");
    for (uint32_t role = 0; role < ROLE_COUNT; role++) {
        if (published[role].size == 0)
            continue;
        text_put(&text, between);
        put_shard(&text, version, role, published + role);
        between = ",";
    }
    text_put(&text, "],\"state\":\"");
    text_put_hex(&text, published[0].state, 32);
    text_put(&text, "\",\"system\":\"");
    text_put_hex(&text, system_digest, 32);
    text_put(&text, "\",\"version\":");
    text_put_number(&text, version);
    text_put(&text, "}");
    return text;
}

static void commit(const struct binding *binding, uint64_t version, struct published *own)
{
    static struct published published[ROLE_COUNT];
    char manifest[PATH_BYTES];
    published[0] = *own;
    if (HAS_PEERS)
        peers_receive(FRAME_PUBLISH, version, published + 1, sizeof *published);
    for (uint32_t role = 1; role < ROLE_COUNT; role++)
        if (memcmp(published[role].state, own->state, 32) != 0)
            refuse("replica-divergence");
    struct text text = manifest_of(binding, version, published);
    int file = begin(version, "", ".manifest.json.tmp");
    files_write(file, text.bytes, text.used);
    name(manifest, version, "", ".manifest.json");
    files_publish(file, open.temporary, manifest, FOLDER);
    refuse_undo = NULL;
    if (HAS_PEERS) {
        uint64_t outcome = OUTCOME_COMMITTED;
        peers_send(FRAME_COMMITTED, version, &outcome, sizeof outcome);
    }
}

#else

static void commit(const struct binding *binding, uint64_t version, struct published *own)
{
    uint64_t outcome = OUTCOME_ABANDONED;
    bool has_shard = open.has_shard;
    (void)binding;
    open.has_shard = false;
    peers_send(FRAME_PUBLISH, version, own, sizeof *own);
    peers_receive(FRAME_COMMITTED, version, &outcome, sizeof outcome);
    open.has_shard = has_shard;
    if (outcome != OUTCOME_COMMITTED)
        refuse(outcome == OUTCOME_REPLICAS_DIFFER ? "replica-divergence" : "peer-lost");
    refuse_undo = NULL;
}

#endif

void publish(const struct binding *binding, uint64_t version)
{
    struct published own = {{0}, {0}, 0};
    memset(&open, 0, sizeof open);
    open.version = version;
    open.children_wait = true;
    refuse_undo = undo;
    files_make_folder(FOLDER);
    learner_digest(own.state);
    if (checkpoint_words(OWN_REGIONS) > 0)
        write_shard(version, &own);
    commit(binding, version, &own);
}
