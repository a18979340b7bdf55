/* Publishes a checkpoint: every owner its shard, then the root the manifest, whose existence is the publication. */
#ifndef PUBLISH_H
#define PUBLISH_H

#include <stdint.h>

#include "binding.h"

/* Before a training: takes back what an earlier start in this folder published of the versions that will be. Its
 * shards will be replaced one by one, and a manifest must not outlive them. */
void publish_withdraw(const struct binding *binding);

/* Refuses `write-failed`, `replica-divergence`, `peer-lost`, `round-deadline` and by frame label. */
void publish(const struct binding *binding, uint64_t version);

#endif
