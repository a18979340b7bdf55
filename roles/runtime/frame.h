/* The header of everything that one role says to another.
 *
 * A header is checked against the one frame that may come next, before a byte of its payload is used. */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum frame_kind {
    FRAME_HELLO = 1,
    FRAME_CONTRIBUTION = 2,
    FRAME_TOTAL = 3,
    FRAME_PUBLISH = 4,
    FRAME_COMMITTED = 5,
    FRAME_OFFER = 6,
    FRAME_REPLICA = 7,
    FRAME_SELECT = 8,
    FRAME_SELECTED = 9,
    FRAME_STATE = 10,
    FRAME_PLACES = 11,
};

/* As it lies on the wire: little-endian, without gaps. */
struct frame {
    char magic[8];
    uint8_t plan[32];
    uint64_t epoch;
    uint64_t round;
    uint32_t sender;
    uint32_t kind;
    uint64_t length; /* of the payload */
    uint8_t zero[24];
};

enum { FRAME_BYTES = 96 };

_Static_assert(sizeof(struct frame) == FRAME_BYTES, "frames have no gaps");

/* A header with everything set that is the same in all frames of a run. */
void frame_begin(struct frame *frame, const uint8_t plan[32], uint64_t epoch);

/* The label of what is wrong with a header, or NULL. */
const char *frame_fault(const struct frame *frame, const struct frame *expected);

/* Whether the first `size` bytes of something could begin a frame. */
bool frame_may_begin(const void *bytes, size_t size);

#endif
