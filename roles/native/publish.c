#include "publish.h"

#include "checkpoint.h"
#include "clock.h"
#include "files.h"
#include "learner.h"
#include "memory.h"
#include "partition.h"
#include "peers.h"
#include "refuse.h"
#include "replica.h"
#include "selection.h"
#include "sha256.h"

#define FOLDER "checkpoint"

#define SHARD_NAME "%u.%n.safetensors"
#define PART_NAME "%u.%n.manifest.json"
#define ROOT_NAME "%u.manifest.json"

_Static_assert(sizeof ROLE_NAME + 40 <= NAME_BYTES, "a shard is named for its owner");

enum { PATH_BYTES = sizeof FOLDER + NAME_BYTES };

struct file {
    uint8_t digest[32];
    uint64_t size; /* 0: there is none */
};

/* What a role tells its parent of itself and all below it. */
struct published {
    uint8_t replicated[32]; /* of what all roles hold alike */
    struct file file;       /* of a role with children its manifest, of another its shard */
    uint64_t differs;       /* whether replicas are known to */
};

/* What a parent answers. */
enum outcome { OUTCOME_COMMITTED = 0, OUTCOME_ABANDONED = 1, OUTCOME_REPLICAS_DIFFER = 2 };

/* What a refusal now would have to take back. Files are no longer a role's own to take back once its parent knows of
 * them: the root's manifest may lead to them already. That one is: until it is known to be durable it may not stay,
 * and it goes before the shards that it names. */
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

static void remove_own(void)
{
    if (open.has_manifest)
        files_remove(open.manifest);
    if (open.has_temporary)
        files_remove(open.temporary);
    if (open.has_shard)
        files_remove(open.shard);
}

static void undo(void)
{
    uint64_t outcome = open.differs ? OUTCOME_REPLICAS_DIFFER : OUTCOME_ABANDONED;
    remove_own();
    peers_tell_down(FRAME_COMMITTED, open.version, &outcome, sizeof outcome);
}

/* Creates the temporary file of one that is to be `name`. */
static int begin(const char *name)
{
    text_name(open.temporary, "%n.tmp", name);
    open.has_temporary = true;
    return files_create(open.temporary);
}

static void finish(int file, const char *name)
{
    files_publish(file, open.temporary, name, FOLDER);
    open.has_temporary = false;
}

static void write_shard(const struct binding *binding, struct file *own)
{
    struct region regions[FIELD_COUNT];
    struct capture capture;
    struct sha256 hash;
    for (uint32_t field = 0; field < FIELD_COUNT; field++)
        regions[field] = partition_published(field, SLOT_SELF);
    if (checkpoint_words(regions) == 0)
        return;
    memcpy(capture.system, identity.system, 32);
    memcpy(capture.run, binding->run, RUN_ID_BYTES);
    capture.epoch = binding->epoch;
    capture.version = open.version;
    struct text header = checkpoint_header(regions, &capture);
    text_name(open.shard, FOLDER "/" SHARD_NAME, open.version, ROLE_NAME);
    int file = begin(open.shard);
    files_write(file, header.bytes, header.used);
    sha256_begin(&hash);
    sha256_add(&hash, header.bytes, header.used);
    for (uint32_t field = 0; field < FIELD_COUNT; field++) {
        if (regions[field].count == 0)
            continue;
        const word *words = learner_word(field, regions[field].first);
        files_write(file, words, regions[field].count * sizeof(word));
        sha256_add(&hash, words, regions[field].count * sizeof(word));
    }
    sha256_end(&hash, own->digest);
    own->size = header.used + checkpoint_words(regions) * sizeof(word);
    open.has_shard = true;
    finish(file, open.shard);
}

static bool has_own_manifest(uint32_t child)
{
    return (FIRST_CHILD + child) * FAN_OUT + 1 < ROLE_COUNT;
}

static void put_parts(struct text *text, const struct published *children)
{
    const char *between = "";
    char name[NAME_BYTES];
    for (uint32_t child = 0; child < CHILD_COUNT; child++) {
        if (!has_own_manifest(child))
            continue;
        text_name(name, PART_NAME, open.version, CHILD_NAMES[child]);
        text_put(text, "%n" MANIFEST_FILE, between, name, children[child].file.digest, children[child].file.size);
        between = ",";
    }
}

static void put_shard(struct text *text, uint32_t slot, const char *owner, const struct file *shard)
{
    const char *between = "";
    char name[NAME_BYTES];
    text_name(name, SHARD_NAME, open.version, owner);
    text_put(text, MANIFEST_SHARD_HEAD, name);
    for (uint32_t field = 0; field < FIELD_COUNT; field++) {
        struct region region = partition_published(field, slot);
        if (region.count == 0)
            continue;
        text_put(text, "%n" MANIFEST_REGION, between, region.count, FIELD_NAMES[field], region.first, region.stride);
        between = ",";
    }
    text_put(text, MANIFEST_SHARD_TAIL, shard->digest, shard->size);
}

/* The own shard, then those of the children that have no manifest of their own. */
static void put_shards(struct text *text, const struct file *own, const struct published *children)
{
    const char *between = "";
    for (uint32_t slot = SLOT_SELF; slot < SLOT_NONE; slot++) {
        uint32_t child = slot - SLOT_CHILD;
        const struct file *shard = slot == SLOT_SELF ? own : &children[child].file;
        if (shard->size == 0 || (slot != SLOT_SELF && has_own_manifest(child)))
            continue;
        text_put(text, between);
        put_shard(text, slot, slot == SLOT_SELF ? ROLE_NAME : CHILD_NAMES[child], shard);
        between = ",";
    }
}

/* Under the name that `open.manifest` holds. */
static void write_manifest(const struct text *text, struct file *written)
{
    int file = begin(open.manifest);
    files_write(file, text->bytes, text->used);
    sha256_of(text->bytes, text->used, written->digest);
    written->size = text->used;
    open.has_manifest = true;
    finish(file, open.manifest);
}

/* Of all words, in their order; of those that nobody holds whole, as they pass. */
#if HELD_IS_WHOLE

static void digest_state(uint8_t digest[32])
{
    learner_digest(digest);
}

#else

static struct sha256 passing;

static void take_passing(uint32_t field, uint64_t coordinate, word value)
{
    (void)field, (void)coordinate;
    sha256_add(&passing, &value, sizeof value);
}

static void digest_state(uint8_t digest[32])
{
    sha256_begin(&passing);
    for (uint32_t field = 0; field < FIELD_COUNT; field++) {
        struct selection selection = {FRAME_STATE, open.version, field, field + 1, PARTITIONED, take_passing};
        if (FIELDS[field].holding == PARTITIONED)
            selection_gather(&selection);
        else
            sha256_add(&passing, learner_field(field), FIELDS[field].size * sizeof(word));
    }
    sha256_end(&passing, digest);
}

#endif

static void commit_as_root(const struct binding *binding, const uint8_t state[32], const struct file *own,
                           const struct published *children)
{
    struct text text = {checkpoint_manifest, sizeof checkpoint_manifest, 0};
    struct file written;
    if (open.differs)
        refuse("replica-divergence");
    text_put(&text, ROOT_HEAD, binding->epoch, (uint64_t)ROLE_COUNT, identity.plan, binding->run,
             (uint64_t)clock_wall_ms());
    put_parts(&text, children);
    text_put(&text, ROOT_SHARDS);
    put_shards(&text, own, children);
    text_put(&text, ROOT_TAIL, state, identity.system, open.version);
    text_name(open.manifest, FOLDER "/" ROOT_NAME, open.version);
    write_manifest(&text, &written);
    refuse_undo = NULL;
    uint64_t outcome = OUTCOME_COMMITTED;
    if (HAS_CHILDREN)
        peers_send_down(FRAME_COMMITTED, open.version, &outcome, sizeof outcome);
}

static void write_part(const struct binding *binding, struct published *own, const struct published *children)
{
    struct text text = {checkpoint_manifest, sizeof checkpoint_manifest, 0};
    text_put(&text, PART_HEAD, binding->epoch, identity.plan, binding->run);
    put_parts(&text, children);
    text_put(&text, PART_SHARDS);
    put_shards(&text, &own->file, children);
    text_put(&text, PART_TAIL, open.version);
    text_name(open.manifest, FOLDER "/" PART_NAME, open.version, ROLE_NAME);
    write_manifest(&text, &own->file);
}

static void commit_as_child(struct published *own)
{
    uint64_t outcome = OUTCOME_ABANDONED;
    own->differs = open.differs;
    refuse_undo = NULL;
    peers_send_up(FRAME_PUBLISH, open.version, own, sizeof *own);
    peers_receive_down(FRAME_COMMITTED, open.version, &outcome, sizeof outcome);
    if (outcome == OUTCOME_COMMITTED) {
        if (HAS_CHILDREN)
            peers_send_down(FRAME_COMMITTED, open.version, &outcome, sizeof outcome);
        return;
    }
    remove_own();
    peers_tell_down(FRAME_COMMITTED, open.version, &outcome, sizeof outcome);
    refuse(outcome == OUTCOME_REPLICAS_DIFFER ? "replica-divergence" : "peer-lost");
}

static void withdraw(uint64_t version)
{
    char name[PATH_BYTES];
    text_name(name, FOLDER "/" ROOT_NAME, version);
    files_remove(name);
}

void publish_withdraw(const struct binding *binding)
{
    withdraw(binding->target);
    withdraw(binding->publish_at);
}

void publish(const struct binding *binding, uint64_t version)
{
    static struct published children[CHILD_COUNT + 1];
    struct published own;
    uint8_t state[32];
    replica_check_released();
    memset(&own, 0, sizeof own);
    memset(&open, 0, sizeof open);
    open.version = version;
    refuse_undo = undo;
    files_make_folder(FOLDER);
    digest_state(state);
    learner_replicated_digest(own.replicated);
    write_shard(binding, &own.file);
    if (HAS_CHILDREN)
        peers_receive_up(FRAME_PUBLISH, version, children, sizeof *children);
    for (uint32_t child = 0; child < CHILD_COUNT; child++)
        open.differs |= children[child].differs != 0 || memcmp(children[child].replicated, own.replicated, 32) != 0;
    if (!IS_ROOT && HAS_CHILDREN && !open.differs)
        write_part(binding, &own, children);
    if (IS_ROOT)
        commit_as_root(binding, state, &own.file, children);
    else
        commit_as_child(&own);
}
