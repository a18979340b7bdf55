/* Frames on their way to and from peers, all at once and under one deadline.
 *
 * Which frames, between whom and in which order is the caller's schedule; a frame's payload goes straight from
 * and into the caller's words. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "frame.h"
#include "system.h"

struct transfer {
    int socket;
    bool sending;
    bool may_leave;     /* once this is received, the peer's end is no loss */
    struct frame frame; /* what is sent, or the only frame that may be received */
    void *payload;      /* frame.length bytes, or a ring of them; only read from when sending */
    size_t ring;        /* bytes of the ring that the payload passes through; 0: it lies there whole */
    const size_t *most; /* payload bytes that may move by now, as others make it more; NULL: all */
    const struct transfer *after; /* on the same socket, and first there; NULL: none */
    size_t done;        /* bytes moved, header included */
    struct frame received;
};

/* Moves what can be moved now; true if anything was. Sets `lost` if the peer is gone. Refuses a wrong header. */
bool exchange_move(struct transfer *transfer, bool *lost);

bool exchange_is_done(const struct transfer *transfer);

/* Payload bytes moved so far. */
size_t exchange_moved(const struct transfer *transfer);

/* Transfers that go on side by side. */
struct exchange {
    struct transfer *transfers;
    struct waiting *waiting; /* room for one entry per transfer */
    size_t count;
    size_t looks;            /* before others may have the core: few where roles may have to share cores */
    void (*work)(void);      /* done whenever something moved, NULL for nothing: it takes what has come, and says
                                by `most` what more may move */
};

/* Looks that pay where as few roles as these are on one machine. */
size_t exchange_looks(uint32_t roles);

/* Runs all transfers to their end. Refuses `peer-lost`, the label of a wrong header, or the deadline's. */
void exchange_run(const struct exchange *exchange, struct deadline deadline);

#endif
