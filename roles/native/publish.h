/* Publishes a checkpoint: every owner its shard, then the root the manifest, whose existence is the publication. */
#ifndef PUBLISH_H
#define PUBLISH_H

#include <stdint.h>

#include "binding.h"

/* Refuses `write-failed`, `replica-divergence`, `peer-lost`, `round-deadline` and by frame label. */
void publish(const struct binding *binding, uint64_t version);

#endif
