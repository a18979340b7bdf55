#include "restore.h"

#include "checkpoint.h"
#include "files.h"
#include "learner.h"
#include "memory.h"
#include "refuse.h"
#include "sha256.h"
#include "system.h"

enum { FOLDER_BYTES = 8 }; /* "restore/" */

/* One entry of the manifest's list, as read; its name stands behind the folder's. */
struct shard {
    char path[FOLDER_BYTES + NAME_BYTES];
    struct region regions[FIELD_COUNT];
    bool foreign; /* has a region that the system has no words for */
    uint8_t digest[32];
    uint64_t size;
};

struct manifest {
    uint64_t epoch;
    uint64_t version;
    uint8_t state[32];
    uint8_t system[32];
    struct scan shards; /* where the list begins */
};

static uint8_t covered[STATE_WORDS];

static size_t read_manifest(const uint8_t bound[32])
{
    uint64_t size = 0;
    uint8_t digest[32];
    int file = files_open("restore/manifest.json", &size);
    if (file < 0)
        refuse("checkpoint-missing");
    if (size > MANIFEST_BYTES || !files_read(file, checkpoint_manifest, size))
        refuse("checkpoint-manifest");
    system_close(file);
    sha256_of(checkpoint_manifest, size, digest);
    if (!memory_is_zero(bound, 32) && memcmp(digest, bound, 32) != 0)
        refuse("checkpoint-chunk");
    return size;
}

static uint32_t field_named(const char *name)
{
    uint32_t field = 0;
    for (; field < FIELD_COUNT; field++) {
        const char *own = FIELDS[field].name;
        size_t i = 0;
        while (own[i] != 0 && own[i] == name[i])
            i++;
        if (own[i] == name[i])
            break;
    }
    return field;
}

/* Regions stand in field order, one a field. What words they are of is asked later, in `cover`: a manifest of
 * another system is told by its system. */
static void scan_regions(struct scan *scan, struct shard *shard)
{
    uint32_t next = 0;
    memset(shard->regions, 0, sizeof shard->regions);
    shard->foreign = false;
    do {
        char name[NAME_BYTES];
        struct region region;
        scan_form(scan, MANIFEST_REGION, &region.count, name, &region.first);
        uint32_t field = field_named(name);
        if (scan->failed || field < next || region.count == 0) {
            scan->failed = true;
        } else if (field == FIELD_COUNT) {
            shard->foreign = true;
        } else {
            shard->foreign |= region.first + region.count > FIELDS[field].size;
            shard->regions[field] = region;
            next = field + 1;
        }
    } while (scan_has(scan, ','));
}

static void scan_shard(struct scan *scan, struct shard *shard)
{
    memcpy(shard->path, "restore/", FOLDER_BYTES);
    scan_form(scan, MANIFEST_SHARD_HEAD, shard->path + FOLDER_BYTES);
    scan_regions(scan, shard);
    scan_form(scan, MANIFEST_SHARD_TAIL, shard->digest, &shard->size);
}

static void scan_manifest(struct manifest *manifest, size_t size)
{
    struct scan scan = {checkpoint_manifest, false};
    struct shard shard;
    char owner[NAME_BYTES];
    uint8_t plan[32];
    uint8_t run[RUN_ID_BYTES];
    uint64_t time_ms;
    scan_form(&scan, MANIFEST_HEAD, &manifest->epoch);
    do
        scan_form(&scan, MANIFEST_OWNER, owner);
    while (scan_has(&scan, ','));
    scan_form(&scan, MANIFEST_SHARDS, plan, run, &time_ms);
    manifest->shards = scan;
    do
        scan_shard(&scan, &shard);
    while (scan_has(&scan, ','));
    scan_form(&scan, MANIFEST_TAIL, manifest->state, manifest->system, &manifest->version);
    if (scan.failed || scan.at != checkpoint_manifest + size)
        refuse("checkpoint-manifest");
}

static void cover(const struct shard *shard)
{
    uint64_t size = 0;
    int file = files_open(shard->path, &size);
    if (file < 0 || shard->foreign)
        refuse("checkpoint-coverage");
    system_close(file);
    for (uint32_t field = 0; field < FIELD_COUNT; field++) {
        const struct region *region = shard->regions + field;
        for (uint64_t i = 0; i < region->count; i++)
            if (covered[FIELDS[field].first + region->first + i]++ != 0)
                refuse("checkpoint-coverage");
    }
}

static void load(const struct shard *shard, uint64_t version)
{
    char found[SHARD_HEADER_BYTES];
    struct text expected = checkpoint_header(shard->regions, version);
    struct sha256 hash;
    uint8_t digest[32];
    uint64_t size = 0;
    int file = files_open(shard->path, &size);
    bool whole = file >= 0 && size == shard->size &&
                 size == expected.used + checkpoint_words(shard->regions) * sizeof(double) &&
                 files_read(file, found, expected.used) && memcmp(found, expected.bytes, expected.used) == 0;
    sha256_begin(&hash);
    sha256_add(&hash, expected.bytes, expected.used);
    for (uint32_t field = 0; field < FIELD_COUNT && whole; field++) {
        const struct region *region = shard->regions + field;
        double *words = learner_words(field, region->first);
        whole = files_read(file, words, region->count * sizeof(double));
        sha256_add(&hash, words, region->count * sizeof(double));
    }
    sha256_end(&hash, digest);
    if (!whole || memcmp(digest, shard->digest, 32) != 0)
        refuse("checkpoint-chunk");
    system_close(file);
}

uint64_t restore(const struct binding *binding)
{
    struct manifest manifest;
    struct shard shard;
    struct scan scan;
    uint8_t digest[32];
    scan_manifest(&manifest, read_manifest(binding->manifest_digest));
    if (memcmp(manifest.system, identity.system, 32) != 0)
        refuse("checkpoint-system");
    scan = manifest.shards;
    do {
        scan_shard(&scan, &shard);
        cover(&shard);
    } while (scan_has(&scan, ','));
    for (size_t i = 0; i < STATE_WORDS; i++)
        if (covered[i] == 0)
            refuse("checkpoint-coverage");
    scan = manifest.shards;
    do {
        scan_shard(&scan, &shard);
        load(&shard, manifest.version);
    } while (scan_has(&scan, ','));
    learner_digest(digest);
    if (memcmp(digest, manifest.state, 32) != 0)
        refuse("checkpoint-chunk");
    learner_check_state();
    if (manifest.epoch >= binding->epoch)
        refuse("checkpoint-epoch");
    return manifest.version;
}
