/* Which coordinates of a field are whose, in arithmetic on their numbers alone.
 *
 * Seen from this role a coordinate comes from a slot: from itself, or from a child, which brings those of all below
 * it. Knows no words. */
#ifndef PARTITION_H
#define PARTITION_H

#include <stdint.h>

#include "plan.h"

enum { SLOT_SELF = 0, SLOT_CHILD = 1, SLOT_NONE = SLOT_CHILD + CHILD_COUNT };

/* Where a coordinate comes from; SLOT_NONE if it is neither this role's nor below it. */
uint32_t partition_slot(uint64_t coordinate);

/* How many of the coordinates of a field of `size` words come from a slot. */
uint64_t partition_count(uint64_t size, uint32_t slot);

/* What the role at a slot writes of a field into its own shard. */
struct region partition_published(uint32_t field, uint32_t slot);

#endif
