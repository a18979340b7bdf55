/* What roles say before anything else: who they are, of which run, and what they are about to do.
 *
 * A frame with 40 bytes of payload: run id 16, mode u32, zero u32, target version u64, start version u64. */
#ifndef HELLO_H
#define HELLO_H

#include <stdint.h>

#include "binding.h"
#include "frame.h"

enum { HELLO_PAYLOAD = 40, HELLO_BYTES = FRAME_BYTES + HELLO_PAYLOAD };

struct hello {
    const uint8_t *plan;
    const struct binding *binding;
    uint64_t start;
};

void hello_write(uint8_t bytes[HELLO_BYTES], const struct hello *hello, uint32_t sender);

/* The label of what does not agree in a hello that should come from `sender`, or NULL. */
const char *hello_fault(const uint8_t bytes[HELLO_BYTES], const struct hello *own, uint32_t sender);

#endif
