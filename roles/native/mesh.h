/* The combine among few roles: over the tree's own connections where they are a star, and where the binding allows,
 * over connections between any two.
 *
 * Knows which connections there are; what is fastest over them is schedule.h's to say. */
#ifndef MESH_H
#define MESH_H

#include <stdbool.h>
#include <stdint.h>

#include "binding.h"
#include "plan.h"

/* After the tree has met: tells the roles each other's ports along it and connects them, where the binding allows.
 * Refuses as peers.h and meeting.h do. */
void mesh_open(const struct binding *binding, uint64_t start);

/* From the own words to the total, in place; false if that is left to the tree. Refuses as peers.h does. */
bool mesh_combine(uint64_t round, word *words, uint64_t count);

#endif
