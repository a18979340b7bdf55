/* The other roles that this one talks to: on a star the root talks to all, every other to the root.
 *
 * Knows who sends to whom; what is said, and what the words mean, is the caller's. */
#ifndef PEERS_H
#define PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "binding.h"
#include "frame.h"
#include "plan.h"

#define IS_ROOT (ROLE_INDEX == 0u)
#define PEER_COUNT (IS_ROOT ? ROLE_COUNT - 1u : 1u)
#define HAS_PEERS (ROLE_COUNT > 1u)

/* Finds every peer and crosses hellos with it. Refuses `connect-deadline`, `port-in-use`, and by frame label. */
void peers_meet(const struct binding *binding, uint64_t start);

/* To every peer the same `length` bytes; from every peer `length` bytes, peer i's at `payloads + i * length`.
 * Refuses `peer-lost`, `round-deadline`, and by frame label. */
void peers_send(uint32_t kind, uint64_t round, const void *payload, uint64_t length);
void peers_receive(uint32_t kind, uint64_t round, void *payloads, uint64_t length);

/* The same to every peer without waiting: whoever cannot take it now will not hear it. For a role that ends. */
void peers_tell(uint32_t kind, uint64_t round, const void *payload, uint64_t length);

#endif
