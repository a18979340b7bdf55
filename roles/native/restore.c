#include "restore.h"

#include "checkpoint.h"
#include "files.h"
#include "learner.h"
#include "manifests.h"
#include "memory.h"
#include "refuse.h"
#include "sha256.h"
#include "system.h"

/* The state is looked at in windows of one field each: no role holds more of it than its own and one window. */
static struct {
    struct manifest manifest;
    uint32_t field;
    uint64_t first; /* coordinates [first, end) */
    uint64_t end;
    word words[RESTORE_WORDS];
    uint8_t covered[RESTORE_WORDS];
} open_set;

static char found[SHARD_HEADER_BYTES + 1];

/* Places in a region of the window's coordinates: from `*at` on, up to the result. */
static uint64_t within_window(const struct region *region, uint64_t *at)
{
    uint64_t stride = region->stride;
    uint64_t before = open_set.first > region->first ? open_set.first - region->first + stride - 1 : 0;
    uint64_t until = open_set.end > region->first ? open_set.end - region->first + stride - 1 : 0;
    uint64_t end = stride > 0 ? until / stride : 0;
    *at = stride > 0 ? before / stride : 0;
    return end < region->count ? end : region->count;
}

static void check_place(const struct listed_shard *shard)
{
    uint64_t size = 0;
    int file = files_open(shard->file.path, &size);
    if (file < 0 || shard->foreign)
        refuse("checkpoint-coverage");
    system_close(file);
}

static void cover(const struct listed_shard *shard)
{
    const struct region *region = shard->regions + open_set.field;
    uint64_t at;
    uint64_t end = within_window(region, &at);
    for (; at < end; at++)
        if (open_set.covered[region->first + at * region->stride - open_set.first]++ != 0)
            refuse("checkpoint-coverage");
}

static void check_covered(void)
{
    for (uint64_t i = 0; i < open_set.end - open_set.first; i++)
        if (open_set.covered[i] == 0)
            refuse("checkpoint-coverage");
}

/* Whether a file says that it is of another capture than the set's. */
static bool is_of_another_capture(int file, uint64_t size)
{
    uint64_t length = size < SHARD_HEADER_BYTES ? size : SHARD_HEADER_BYTES;
    const struct capture *own = &open_set.manifest.capture;
    struct capture capture;
    if (length < 8 || !files_read_at(file, found, length, 0))
        return false;
    found[length] = 0;
    if (!shard_capture(found + 8, &capture))
        return false;
    return memcmp(capture.run, own->run, 16) != 0 || capture.epoch != own->epoch ||
           capture.version != own->version;
}

static uint64_t header_bytes(const struct region regions[FIELD_COUNT])
{
    return checkpoint_header(regions, &open_set.manifest.capture).used;
}

/* Reads a file from one end to the other. */
static bool is_whole(int file, const struct listed_shard *shard)
{
    uint8_t digest[32];
    struct sha256 hash;
    struct text expected = checkpoint_header(shard->regions, &open_set.manifest.capture);
    uint64_t left = checkpoint_words(shard->regions) * sizeof(word);
    if (!files_read(file, found, expected.used) || memcmp(found, expected.bytes, expected.used) != 0)
        return false;
    sha256_begin(&hash);
    sha256_add(&hash, found, expected.used);
    while (left > 0) {
        uint64_t piece = left < sizeof open_set.words ? left : sizeof open_set.words;
        if (!files_read(file, open_set.words, piece))
            return false;
        sha256_add(&hash, open_set.words, piece);
        left -= piece;
    }
    sha256_end(&hash, digest);
    return memcmp(digest, shard->file.digest, 32) == 0;
}

static void check_file(const struct listed_shard *shard)
{
    uint64_t size = 0;
    int file = files_open(shard->file.path, &size);
    if (file < 0)
        refuse("checkpoint-chunk");
    if (is_of_another_capture(file, size))
        refuse("checkpoint-capture");
    uint64_t words = checkpoint_words(shard->regions);
    if (size != shard->file.size || size != header_bytes(shard->regions) + words * sizeof(word) ||
        !is_whole(file, shard))
        refuse("checkpoint-chunk");
    system_close(file);
}

/* The shard's words of the window. */
static void load(const struct listed_shard *shard)
{
    const struct region *region = shard->regions + open_set.field;
    uint64_t at;
    uint64_t end = within_window(region, &at);
    uint64_t size = 0;
    if (at >= end)
        return;
    uint64_t place = header_bytes(shard->regions);
    for (uint32_t field = 0; field < open_set.field; field++)
        place += shard->regions[field].count * sizeof(word);
    int file = files_open(shard->file.path, &size);
    for (uint64_t left; at < end; at += left) {
        word piece[64];
        left = end - at < 64 ? end - at : 64;
        if (file < 0 || !files_read_at(file, piece, left * sizeof(word), place + at * sizeof(word)))
            refuse("checkpoint-chunk");
        for (uint64_t i = 0; i < left; i++)
            open_set.words[region->first + (at + i) * region->stride - open_set.first] = piece[i];
    }
    system_close(file);
}

static void keep_held(struct sha256 *hash)
{
    sha256_add(hash, open_set.words, (open_set.end - open_set.first) * sizeof(word));
    for (uint64_t i = open_set.first; i < open_set.end; i++) {
        word *held = learner_word(open_set.field, i);
        if (held)
            *held = open_set.words[i - open_set.first];
    }
}

/* Moves on to the next window, or the first one of the first field; false behind the last. */
static bool next_window(bool is_first)
{
    if (is_first) {
        open_set.field = 0;
        open_set.end = 0;
    } else if (open_set.end == FIELDS[open_set.field].size) {
        open_set.field++;
        open_set.end = 0;
    }
    if (open_set.field == FIELD_COUNT)
        return false;
    uint64_t left = FIELDS[open_set.field].size - open_set.end;
    open_set.first = open_set.end;
    open_set.end += left < RESTORE_WORDS ? left : RESTORE_WORDS;
    return true;
}

uint64_t restore(const struct binding *binding)
{
    const struct manifest *manifest = &open_set.manifest;
    struct sha256 hash;
    uint8_t digest[32];
    manifests_open(&open_set.manifest, binding->manifest_digest);
    manifests_check(manifest); /* every manifest is right before anything is said of a shard */
    manifests_walk(manifest, check_place);
    for (bool more = next_window(true); more; more = next_window(false)) {
        memset(open_set.covered, 0, sizeof open_set.covered);
        manifests_walk(manifest, cover);
        check_covered();
    }
    manifests_walk(manifest, check_file);
    sha256_begin(&hash);
    for (bool more = next_window(true); more; more = next_window(false)) {
        manifests_walk(manifest, load);
        keep_held(&hash);
    }
    sha256_end(&hash, digest);
    if (memcmp(digest, manifest->state, 32) != 0)
        refuse("checkpoint-chunk");
    learner_check_state();
    if (manifest->capture.epoch >= binding->epoch)
        refuse("checkpoint-epoch");
    return manifest->capture.version;
}
