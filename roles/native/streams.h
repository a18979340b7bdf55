/* Words to or from a neighbour in the tree, one after the other: a number of them that both sides know, in frames of
 * at most WINDOW_WORDS. Knows no meaning of the words; refuses as peers.h does. */
#ifndef STREAMS_H
#define STREAMS_H

#include <stdint.h>

#include "plan.h"

/* The stream to or from child i is i. */
enum { STREAM_UP = CHILD_COUNT };

/* Every stream's window, one behind the other: room for all that lies between two exchanges. */
extern word streams_windows[(CHILD_COUNT + 1) * WINDOW_WORDS];

/* How many of `words` words go into the next frame. */
uint64_t streams_piece(uint64_t words);

/* Down from the root: afterwards every role has the root's words. */
void streams_deliver(uint32_t kind, uint64_t round, word *words, uint64_t count);

void streams_begin(uint32_t stream, uint32_t kind, uint64_t round, uint64_t words);

/* The next word; the last one that is put sends what is left. */
word streams_take(uint32_t stream);
void streams_put(uint32_t stream, word value);

#endif
