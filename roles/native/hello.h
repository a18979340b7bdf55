/* What roles say before anything else: who they are, of which run, and what they are about to do. */
#ifndef HELLO_H
#define HELLO_H

#include <stdbool.h>
#include <stdint.h>

#include "binding.h"
#include "frame.h"

/* A frame of round 0 and its payload, as they lie on the wire. */
struct hello {
    struct frame frame;
    uint8_t run[RUN_ID_BYTES];
    uint32_t mode;
    uint32_t mesh;
    uint64_t target; /* version to reach */
    uint64_t start;  /* version begun from */
    uint8_t secret[SECRET_BYTES];
};

enum { HELLO_BYTES = 152, HELLO_PAYLOAD = HELLO_BYTES - FRAME_BYTES };

_Static_assert(sizeof(struct hello) == HELLO_BYTES, "hellos have no gaps");

void hello_begin(struct hello *hello, const struct binding *binding, uint64_t start);

/* Whether a whole hello is of the same launch; how long that takes says nothing of the secret. */
bool hello_is_of_launch(const struct hello *hello, const struct hello *own);

/* The label of what does not agree in a hello that should come from `sender`, or NULL. */
const char *hello_fault(const struct hello *hello, const struct hello *own, uint32_t sender);

#endif
