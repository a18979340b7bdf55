/* The read replica of partitioned parameters: all of them, for one round, at every role.
 *
 * The owners *offer* their coordinates as of a version; the replica is *materialized* with that version as its tag;
 * the role *contributes* from it, and *releases* it before anything may change. Its memory is no part of the state
 * and is given back when it is released. */
#ifndef REPLICA_H
#define REPLICA_H

#include <stdint.h>

#include "plan.h"

/* Own coordinates up the tree. Refuses `data-parallel-replica-retained` if a replica is live. */
void replica_offer(uint64_t version);

/* The whole down the tree. */
void replica_materialize(uint64_t version);

/* The parameters to contribute from, in field and index order. Refuses `data-parallel-replica-released` if none are
 * live, `data-parallel-replica-version` if they are of another version. */
word *replica_contribute(uint64_t version);

void replica_release(void);

/* Before an update or a publication: refuses `data-parallel-replica-retained` if a replica is live. */
void replica_check_released(void);

#endif
