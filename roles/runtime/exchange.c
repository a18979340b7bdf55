#include "exchange.h"

#include "net.h"
#include "refuse.h"

/* A peer on the same machine answers within microseconds, and waking up costs as much: look this often before
 * going to sleep. Two roles mostly have a core each; of more, the one that is waited for may need this very core. */
enum { LOOKS_BEFORE_SLEEP = 200, LOOKS_OF_TWO = 8 };

size_t exchange_looks(uint32_t roles)
{
    return roles > 2 ? 0 : LOOKS_OF_TWO;
}

bool exchange_is_done(const struct transfer *transfer)
{
    return transfer->done == FRAME_BYTES + transfer->frame.length;
}

size_t exchange_moved(const struct transfer *transfer)
{
    return transfer->done > FRAME_BYTES ? transfer->done - FRAME_BYTES : 0;
}

/* The payload's next bytes that may move and lie in one piece. */
static struct span payload_of(const struct transfer *transfer)
{
    size_t from = exchange_moved(transfer);
    size_t to = transfer->frame.length;
    size_t at = from;
    if (transfer->most && *transfer->most < to)
        to = *transfer->most;
    if (transfer->ring > 0) {
        at = from % transfer->ring;
        if (to - from > transfer->ring - at)
            to = from + transfer->ring - at;
    }
    return (struct span){(uint8_t *)transfer->payload + at, to - from};
}

/* What may move now: up to two pieces. A header waits for the first of its payload, so that both are one packet. */
static size_t pieces_of(struct transfer *transfer, struct span pieces[2])
{
    size_t count = 0;
    struct span payload = payload_of(transfer);
    if (transfer->after && !exchange_is_done(transfer->after))
        return 0;
    if (transfer->sending && payload.size == 0 && transfer->frame.length > 0)
        return 0;
    if (transfer->done < FRAME_BYTES) {
        uint8_t *header = (uint8_t *)(transfer->sending ? &transfer->frame : &transfer->received);
        pieces[count++] = (struct span){header + transfer->done, FRAME_BYTES - transfer->done};
    }
    if (payload.size > 0)
        pieces[count++] = payload;
    return count;
}

bool exchange_move(struct transfer *transfer, bool *lost)
{
    struct span pieces[2];
    size_t before = transfer->done;
    size_t count = pieces_of(transfer, pieces);
    if (count == 0)
        return false;
    long moved = net_move(transfer->socket, transfer->sending, pieces, count);
    if (moved < 0) {
        *lost = true;
        return false;
    }
    transfer->done += (size_t)moved;
    if (!transfer->sending && before < FRAME_BYTES && transfer->done >= FRAME_BYTES) {
        const char *fault = frame_fault(&transfer->received, &transfer->frame);
        if (fault)
            refuse(fault);
    }
    return moved > 0;
}

/* What a transfer waits for: its socket, and what of it. A peer whose frame is in may still die while others are
 * late: better known now than a round later. One that has been sent its last frame may leave; one that may leave
 * once its frames are here can do so while there is no room for them. */
static struct waiting waiting_of(struct transfer *transfer)
{
    struct span pieces[2];
    bool done = exchange_is_done(transfer);
    if (!done && pieces_of(transfer, pieces) > 0)
        return (struct waiting){transfer->socket, transfer->sending ? WAIT_WRITE : WAIT_READ, 0};
    if (transfer->sending ? done : transfer->may_leave)
        return (struct waiting){-1, 0, 0};
    return (struct waiting){transfer->socket, WAIT_GONE, 0};
}

static void sleep_for(const struct exchange *exchange, struct deadline deadline)
{
    for (size_t i = 0; i < exchange->count; i++)
        exchange->waiting[i] = waiting_of(exchange->transfers + i);
    net_wait(exchange->waiting, exchange->count, deadline, INT64_MAX);
    for (size_t i = 0; i < exchange->count; i++)
        if (exchange->waiting[i].wanted == WAIT_GONE && net_is_gone(exchange->waiting + i))
            refuse("peer-lost");
}

void exchange_run(const struct exchange *exchange, struct deadline deadline)
{
    size_t looks = 0;
    for (;;) {
        bool moved = false;
        bool lost = false;
        size_t open = 0;
        for (size_t i = 0; i < exchange->count; i++) {
            struct transfer *transfer = exchange->transfers + i;
            if (exchange_is_done(transfer))
                continue;
            moved |= exchange_move(transfer, &lost);
            open += !exchange_is_done(transfer);
        }
        if (moved && exchange->work)
            exchange->work();
        /* A role that was stopped past its deadline finds that out first, whatever came meanwhile. */
        if (lost || open == 0) {
            (void)clock_left_ms(deadline);
            if (lost)
                refuse("peer-lost");
            return;
        }
        looks = moved ? 0 : looks + open;
        if (looks >= LOOKS_BEFORE_SLEEP)
            sleep_for(exchange, deadline);
        else if (looks > exchange->looks)
            (void)system_call(CALL_YIELD, 0, 0, 0, 0, 0);
    }
}
