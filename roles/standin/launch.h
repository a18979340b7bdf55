/* A launch: a kernel of a module, done thread by thread. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#include "module.h"

enum launched { LAUNCH_DONE, LAUNCH_ADDRESS, LAUNCH_ALIGNMENT, LAUNCH_ENDLESS, LAUNCH_RACE, LAUNCH_NO_MEMORY };

struct launch {
    size_t card;
    uint32_t number; /* of this launch among all, from 1 on */
    uint32_t blocks;
    uint32_t threads; /* of a block */
    uint64_t parameters[NAMES_PARAMETERS];
    uint64_t spoil; /* bits that the first word to be stored has wrong */
};

/* Ends at the first thread that does what it may not. Every operation rounds as the host's one does: to nearest,
 * denormals kept. */
enum launched launch_run(const struct kernel *kernel, struct launch *launch);

#endif
