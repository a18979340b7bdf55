/* The manifests of a checkpoint in `restore/`, read as strictly as there is one right form of each.
 *
 * They form a tree that may be larger than memory: it is walked as often as somebody asks what is in it, one
 * manifest in memory at a time, each checked against the digest that names it. Knows no word of the state. */
#ifndef MANIFESTS_H
#define MANIFESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "plan.h"
#include "text.h"

enum { RESTORE_PATH_BYTES = 8 + NAME_BYTES }; /* "restore/" and a name */

/* A file as a manifest names it. */
struct named {
    char path[RESTORE_PATH_BYTES];
    uint8_t digest[32];
    uint64_t size;
};

struct listed_shard {
    struct named file;
    struct region regions[FIELD_COUNT];
    bool foreign; /* has a region that the system has no words for */
};

/* What the root's manifest says of the whole. */
struct manifest {
    struct capture capture;
    uint8_t plan[32];
    uint8_t state[32];
    struct named root;
};

/* Reads the root's. Refuses `checkpoint-missing`, `checkpoint-chunk` if it is not the bound one, `checkpoint-manifest`,
 * `checkpoint-system`. */
void manifests_open(struct manifest *manifest, const uint8_t bound[32]);

/* Reads all of them. Refuses as below, and `checkpoint-coverage` if a part is named twice: what holds no words would
 * else be counted twice unnoticed, and a small set could be walked without end. */
void manifests_check(const struct manifest *manifest);

/* Every shard of the set. Refuses as above, `checkpoint-coverage` if a part is not there, `checkpoint-capture` if it
 * is of another capture. */
void manifests_walk(const struct manifest *manifest, void (*visit)(const struct listed_shard *shard));

#endif
