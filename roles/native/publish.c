#include "publish.h"

#include "checkpoint.h"
#include "files.h"
#include "learner.h"
#include "memory.h"
#include "peers.h"
#include "refuse.h"
#include "sha256.h"

#define FOLDER "checkpoint"

#define SHARD_NAME "%u." ROLE_NAME ".safetensors"

_Static_assert(sizeof ROLE_NAME + 40 <= NAME_BYTES, "a shard is named for its owner");

enum { PATH_BYTES = sizeof FOLDER + NAME_BYTES };

/* What an owner tells the root. */
struct published {
    uint8_t state[32];
    uint8_t shard[32];
    uint64_t size; /* of the shard; 0: the owner has none */
};

/* What the root answers. */
enum outcome { OUTCOME_COMMITTED = 0, OUTCOME_ABANDONED = 1, OUTCOME_REPLICAS_DIFFER = 2 };

/* What a refusal now would have to take back. A child's shard is no longer its own to take back once the root
 * knows of it: the manifest may name it already. The root's manifest is: until it is known to be durable it may
 * not stay, and it goes before the shards that it names. */
static struct {
    uint64_t version;
    char temporary[PATH_BYTES];
    char shard[PATH_BYTES];
    char manifest[PATH_BYTES];
    bool has_temporary;
    bool has_shard;
    bool has_manifest;
    bool differs;
} open;

static void undo(void)
{
    if (open.has_manifest)
        files_remove(open.manifest);
    if (open.has_temporary)
        files_remove(open.temporary);
    if (open.has_shard)
        files_remove(open.shard);
    if (IS_ROOT && HAS_PEERS) {
        uint64_t outcome = open.differs ? OUTCOME_REPLICAS_DIFFER : OUTCOME_ABANDONED;
        peers_tell(FRAME_COMMITTED, open.version, &outcome, sizeof outcome);
    }
}

/* Creates the temporary file that `form` names for the version. */
static int begin(const char *form)
{
    text_name(open.temporary, form, open.version);
    open.has_temporary = true;
    return files_create(open.temporary);
}

static void write_shard(struct published *own)
{
    struct text header = checkpoint_header(OWN_REGIONS, open.version);
    struct sha256 hash;
    int file = begin(FOLDER "/" SHARD_NAME ".tmp");
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
    text_name(open.shard, FOLDER "/" SHARD_NAME, open.version);
    open.has_shard = true;
    files_publish(file, open.temporary, open.shard, FOLDER);
    open.has_temporary = false;
}

static const char *name_after(const char *name)
{
    while (*name++ != 0) {
    }
    return name;
}

static void put_shard(struct text *text, uint32_t role, const char *owner, const struct published *published)
{
    const char *between = "";
    char file[NAME_BYTES];
    text_name(file, "%u.%n.safetensors", open.version, owner);
    text_put(text, MANIFEST_SHARD_HEAD, file);
    for (uint32_t field = 0; field < FIELD_COUNT; field++) {
        uint64_t first = REGION_BOUNDS[field][role];
        uint64_t count = REGION_BOUNDS[field][role + 1] - first;
        if (count == 0)
            continue;
        text_put(text, "%n" MANIFEST_REGION, between, count, FIELDS[field].name, first);
        between = ",";
    }
    text_put(text, MANIFEST_SHARD_TAIL, published->shard, published->size);
}

static struct text manifest_of(const struct binding *binding, const struct published *published)
{
    struct text text = {checkpoint_manifest, sizeof checkpoint_manifest, 0};
    const char *between = "";
    const char *owner = ROLE_NAMES;
    text_put(&text, MANIFEST_HEAD, binding->epoch);
    for (uint32_t role = 0; role < ROLE_COUNT; role++, owner = name_after(owner)) {
        text_put(&text, "%n" MANIFEST_OWNER, between, owner);
        between = ",";
    }
    between = "";
    owner = ROLE_NAMES;
    text_put(&text, MANIFEST_SHARDS, identity.plan, binding->run, (uint64_t)clock_wall_ms());
    for (uint32_t role = 0; role < ROLE_COUNT; role++, owner = name_after(owner)) {
        if (published[role].size == 0)
            continue;
        text_put(&text, between);
        put_shard(&text, role, owner, published + role);
        between = ",";
    }
    text_put(&text, MANIFEST_TAIL, published[0].state, identity.system, open.version);
    return text;
}

static void commit_as_root(const struct binding *binding, uint64_t version, struct published *own)
{
    static struct published published[ROLE_COUNT];
    published[0] = *own;
    if (HAS_PEERS)
        peers_receive(FRAME_PUBLISH, version, published + 1, sizeof *published);
    for (uint32_t role = 1; role < ROLE_COUNT; role++)
        open.differs |= memcmp(published[role].state, own->state, 32) != 0;
    if (open.differs)
        refuse("replica-divergence");
    struct text text = manifest_of(binding, published);
    int file = begin(FOLDER "/%u.manifest.json.tmp");
    files_write(file, text.bytes, text.used);
    text_name(open.manifest, FOLDER "/%u.manifest.json", version);
    open.has_manifest = true;
    files_publish(file, open.temporary, open.manifest, FOLDER);
    refuse_undo = NULL;
    if (HAS_PEERS) {
        uint64_t outcome = OUTCOME_COMMITTED;
        peers_send(FRAME_COMMITTED, version, &outcome, sizeof outcome);
    }
}

static void commit_as_child(uint64_t version, struct published *own)
{
    uint64_t outcome = OUTCOME_ABANDONED;
    bool has_shard = open.has_shard;
    open.has_shard = false;
    peers_send(FRAME_PUBLISH, version, own, sizeof *own);
    peers_receive(FRAME_COMMITTED, version, &outcome, sizeof outcome);
    open.has_shard = has_shard;
    if (outcome != OUTCOME_COMMITTED)
        refuse(outcome == OUTCOME_REPLICAS_DIFFER ? "replica-divergence" : "peer-lost");
    refuse_undo = NULL;
}

void publish(const struct binding *binding, uint64_t version)
{
    struct published own = {{0}, {0}, 0};
    memset(&open, 0, sizeof open);
    open.version = version;
    refuse_undo = undo;
    files_make_folder(FOLDER);
    learner_digest(own.state);
    if (checkpoint_words(OWN_REGIONS) > 0)
        write_shard(&own);
    if (IS_ROOT)
        commit_as_root(binding, version, &own);
    else
        commit_as_child(version, &own);
}
