/* The header of everything that one role says to another: 96 bytes, little-endian.
 *
 *   0 magic "ORCHFRM1"   8 plan digest   40 epoch u64   48 round u64   56 sender u32   60 kind u32
 *   64 payload length u64   72 zero to the end
 *
 * A header is checked against the one frame that may come next, before a byte of its payload is used. */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FRAME_BYTES = 96 };

enum frame_kind {
    FRAME_HELLO = 1,
    FRAME_CONTRIBUTION = 2,
    FRAME_TOTAL = 3,
    FRAME_PUBLISH = 4,
    FRAME_COMMITTED = 5,
};

struct frame {
    const uint8_t *plan; /* 32 bytes */
    uint64_t epoch;
    uint64_t round;
    uint32_t sender;
    uint32_t kind;
    uint64_t length;
};

void frame_write(uint8_t bytes[FRAME_BYTES], const struct frame *frame);

/* The label of what is wrong with a header, or NULL. */
const char *frame_fault(const uint8_t bytes[FRAME_BYTES], const struct frame *expected);

/* Whether the first `size` bytes of something could begin a frame. */
bool frame_may_begin(const uint8_t *bytes, size_t size);

uint32_t frame_sender(const uint8_t bytes[FRAME_BYTES]);
uint64_t frame_length(const uint8_t bytes[FRAME_BYTES]);

#endif
