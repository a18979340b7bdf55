/* Reads a checkpoint from `restore/`, whoever wrote it and in however many shards. */
#ifndef RESTORE_H
#define RESTORE_H

#include <stdint.h>

#include "binding.h"

/* Loads the learner's state and gives its version. Refuses by `checkpoint-*` and `non-finite`. */
uint64_t restore(const struct binding *binding);

#endif
