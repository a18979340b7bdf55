#include "manifests.h"

#include "checkpoint.h"
#include "clock.h"
#include "files.h"
#include "memory.h"
#include "refuse.h"
#include "sha256.h"
#include "system.h"

enum { DEEPEST = 32 }; /* a tree with two children a role has as many roles by then as there are numbers */
enum { NAMES_AT_ONCE = 64 };

/* A manifest in memory: where its two lists begin. */
struct lists {
    struct scan parts;
    struct scan shards;
};

static void refuse_if(bool is_wrong, const char *label)
{
    if (is_wrong)
        refuse(label);
}

static void scan_named(struct scan *scan, const char *form, struct named *file)
{
    memcpy(file->path, "restore/", 8);
    scan_form(scan, form, file->path + 8, file->digest, &file->size);
}

static uint32_t field_named(const char *name)
{
    uint32_t field = 0;
    for (; field < FIELD_COUNT; field++) {
        const char *own = FIELD_NAMES[field];
        size_t i = 0;
        while (own[i] != 0 && own[i] == name[i])
            i++;
        if (own[i] == name[i])
            break;
    }
    return field;
}

static bool is_within(const struct region *region, uint64_t size)
{
    return region->first < size && (region->count - 1) <= (size - 1 - region->first) / region->stride;
}

/* Regions stand in field order, one a field. What words they are of is asked later: a manifest of another system is
 * told by its system. */
static void scan_regions(struct scan *scan, struct listed_shard *shard)
{
    uint32_t next = 0;
    memset(shard->regions, 0, sizeof shard->regions);
    shard->foreign = false;
    do {
        char name[NAME_BYTES];
        struct region region = {0, 0, 0};
        scan_form(scan, MANIFEST_REGION, &region.count, name, &region.first, &region.stride);
        uint32_t field = field_named(name);
        if (scan->failed || field < next || region.count == 0 || region.stride == 0 ||
            (region.count == 1 && region.stride != 1)) {
            scan->failed = true;
        } else if (field == FIELD_COUNT) {
            shard->foreign = true;
        } else {
            shard->foreign |= !is_within(&region, FIELDS[field].size);
            shard->regions[field] = region;
            next = field + 1;
        }
    } while (!scan->failed && scan_has(scan, ','));
}

static void scan_shard(struct scan *scan, struct listed_shard *shard)
{
    memcpy(shard->file.path, "restore/", 8);
    scan_form(scan, MANIFEST_SHARD_HEAD, shard->file.path + 8);
    scan_regions(scan, shard);
    scan_form(scan, MANIFEST_SHARD_TAIL, shard->file.digest, &shard->file.size);
}

static struct listed_shard listed; /* large, and one at a time */

/* Past both lists, which may be empty, so that no manifest is used that is not whole in its form. */
static struct lists scan_lists(struct scan *scan, const char *between)
{
    struct named part;
    struct lists lists;
    lists.parts = *scan;
    if (*scan->at == '{')
        do
            scan_named(scan, MANIFEST_FILE, &part);
        while (scan_has(scan, ','));
    scan_form(scan, between);
    lists.shards = *scan;
    if (*scan->at == '{')
        do
            scan_shard(scan, &listed);
        while (scan_has(scan, ','));
    return lists;
}

/* The text of a manifest; its digest and size are noted. */
static struct scan read_text(struct named *file, const char *missing)
{
    uint64_t size = 0;
    int opened = files_open(file->path, &size);
    refuse_if(opened < 0, missing);
    refuse_if(size > MANIFEST_BYTES, "checkpoint-manifest");
    refuse_if(!files_read(opened, checkpoint_manifest, size), "checkpoint-chunk");
    system_close(opened);
    checkpoint_manifest[size] = 0;
    sha256_of(checkpoint_manifest, size, file->digest);
    file->size = size;
    return (struct scan){checkpoint_manifest, false};
}

static void check_end(const struct scan *scan, uint64_t size)
{
    refuse_if(scan->failed || scan->at != checkpoint_manifest + size, "checkpoint-manifest");
}

static struct lists scan_root(struct manifest *manifest, struct scan scan)
{
    struct capture *capture = &manifest->capture;
    uint64_t owners = 0;
    uint64_t time_ms;
    scan_form(&scan, ROOT_HEAD, &capture->epoch, &owners, manifest->plan, capture->run, &time_ms);
    struct lists lists = scan_lists(&scan, ROOT_SHARDS);
    scan_form(&scan, ROOT_TAIL, manifest->state, capture->system, &capture->version);
    scan.failed |= owners == 0;
    check_end(&scan, manifest->root.size);
    return lists;
}

static struct lists scan_part(const struct manifest *manifest, uint64_t size, struct scan scan)
{
    uint64_t epoch = 0;
    uint64_t version = 0;
    uint8_t plan[32];
    uint8_t run[16];
    scan_form(&scan, PART_HEAD, &epoch, plan, run);
    struct lists lists = scan_lists(&scan, PART_SHARDS);
    scan_form(&scan, PART_TAIL, &version);
    check_end(&scan, size);
    refuse_if(epoch != manifest->capture.epoch || version != manifest->capture.version ||
                  memcmp(plan, manifest->plan, 32) != 0 || memcmp(run, manifest->capture.run, 16) != 0,
              "checkpoint-capture");
    return lists;
}

/* What it says is looked at first: a part of another capture is told by that, not by its digest. */
static struct lists read_lists(const struct manifest *manifest, const struct named *part)
{
    clock_check_run(); /* a set may be long to walk */
    struct manifest again = *manifest;
    struct named found = part ? *part : manifest->root;
    struct scan scan = read_text(&found, part ? "checkpoint-coverage" : "checkpoint-missing");
    again.root = found;
    struct lists lists = part ? scan_part(manifest, found.size, scan) : scan_root(&again, scan);
    const struct named *named = part ? part : &manifest->root;
    refuse_if(found.size != named->size || memcmp(found.digest, named->digest, 32) != 0, "checkpoint-chunk");
    return lists;
}

static void pass_by(const struct listed_shard *shard)
{
    (void)shard;
}

/* Names of parts, by their digests: from the first-th that is met on, as many as there is room for. None may be met
 * again in the same walk; it takes a walk for each room full of them. */
static struct {
    uint64_t first;
    uint64_t met;
    uint8_t names[NAMES_AT_ONCE][SHA256_BYTES];
} seen;

static void meet(const struct named *part)
{
    uint8_t name[SHA256_BYTES];
    size_t length = 0;
    while (part->path[length] != 0)
        length++;
    sha256_of(part->path, length, name);
    for (uint64_t i = seen.first; i < seen.met && i - seen.first < NAMES_AT_ONCE; i++)
        refuse_if(memcmp(seen.names[i - seen.first], name, sizeof name) == 0, "checkpoint-coverage");
    if (seen.met >= seen.first && seen.met - seen.first < NAMES_AT_ONCE)
        memcpy(seen.names[seen.met - seen.first], name, sizeof name);
    seen.met++;
}

/* The shards of one manifest (`part`; the root's if NULL), then those of its parts. A part is read over it, so that it
 * has to be read again for the next one. */
static void walk(const struct manifest *manifest, const struct named *part, unsigned depth,
                 void (*visit)(const struct listed_shard *shard))
{
    refuse_if(depth > DEEPEST, "checkpoint-manifest");
    if (part && visit == pass_by)
        meet(part);
    struct lists lists = read_lists(manifest, part);
    if (*lists.shards.at == '{')
        do {
            scan_shard(&lists.shards, &listed);
            visit(&listed);
        } while (scan_has(&lists.shards, ','));
    bool has_more = *lists.parts.at == '{';
    for (const char *at = lists.parts.at; has_more;) {
        struct named below;
        struct scan scan = {at, false};
        scan_named(&scan, MANIFEST_FILE, &below);
        at = scan.at + 1;
        has_more = *scan.at == ',';
        walk(manifest, &below, depth + 1, visit);
        if (has_more)
            (void)read_lists(manifest, part);
    }
}

void manifests_open(struct manifest *manifest, const uint8_t bound[32])
{
    text_name(manifest->root.path, "restore/manifest.json");
    struct scan scan = read_text(&manifest->root, "checkpoint-missing");
    refuse_if(!memory_is_zero(bound, 32) && memcmp(manifest->root.digest, bound, 32) != 0, "checkpoint-chunk");
    (void)scan_root(manifest, scan);
    refuse_if(memcmp(manifest->capture.system, identity.system, 32) != 0, "checkpoint-system");
}

void manifests_check(const struct manifest *manifest)
{
    seen.first = 0;
    do {
        seen.met = 0;
        walk(manifest, NULL, 0, pass_by);
        seen.first += NAMES_AT_ONCE;
    } while (seen.first < seen.met);
}

void manifests_walk(const struct manifest *manifest, void (*visit)(const struct listed_shard *shard))
{
    walk(manifest, NULL, 0, visit);
}
