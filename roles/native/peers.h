/* The roles that this one talks to: its parent and its children in the combine tree.
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
#define HAS_CHILDREN (CHILD_COUNT > 0u)
#define HAS_PEERS (ROLE_COUNT > 1u)
#if GRADIENTS_PARTITIONED
#define IS_MESH_POSSIBLE 0
#else
#define IS_MESH_POSSIBLE (HAS_PEERS && ROLE_COUNT <= 16u)
#endif
#define PARENT ((ROLE_INDEX - 1u) / FAN_OUT)
#define FIRST_CHILD (ROLE_INDEX * FAN_OUT + 1u)

/* Finds parent and children and crosses hellos with them. Refuses `connect-deadline`, `port-in-use`, `peer-lost`, and
 * by frame label. */
void peers_meet(const struct binding *binding, uint64_t start);

/* The calls below refuse `peer-lost`, `round-deadline`, and by frame label. */

void peers_send_up(uint32_t kind, uint64_t round, const void *payload, uint64_t length);
void peers_receive_down(uint32_t kind, uint64_t round, void *payload, uint64_t length);

/* To every child the same; from every child `length` bytes, child i's at `payloads + i * length`. */
void peers_send_down(uint32_t kind, uint64_t round, const void *payload, uint64_t length);
void peers_receive_up(uint32_t kind, uint64_t round, void *payloads, uint64_t length);

/* To or from one child. */
void peers_send_to(uint32_t child, uint32_t kind, uint64_t round, const void *payload, uint64_t length);
void peers_receive_from(uint32_t child, uint32_t kind, uint64_t round, void *payload, uint64_t length);

/* To every child without waiting: whoever cannot take it now will not hear it. For a role that ends. */
void peers_tell_down(uint32_t kind, uint64_t round, const void *payload, uint64_t length);

/* For who exchanges by a schedule of its own: the socket to a neighbour (-1 for another role), this side's address on
 * the way to one, what all frames have in common, when a round that begins now is late, and that it has come to its
 * end. */
int peers_socket(uint32_t role);
struct endpoint peers_place(void);
const struct frame *peers_frame(void);
struct deadline peers_deadline(void);
void peers_have_begun(void);

#endif
