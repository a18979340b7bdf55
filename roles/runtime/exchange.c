#include "exchange.h"

#include "net.h"
#include "refuse.h"

/* A peer on the same machine answers within microseconds, and waking up costs as much: look this often before
 * going to sleep. */
enum { LOOKS_BEFORE_SLEEP = 200 };

bool exchange_is_done(const struct transfer *transfer)
{
    return transfer->done == FRAME_BYTES + transfer->frame.length;
}

bool exchange_move(struct transfer *transfer, bool *lost)
{
    struct span pieces[2];
    size_t count = 0;
    size_t before = transfer->done;
    size_t into = before > FRAME_BYTES ? before - FRAME_BYTES : 0;
    uint8_t *header = (uint8_t *)(transfer->sending ? &transfer->frame : &transfer->received);
    if (before < FRAME_BYTES)
        pieces[count++] = (struct span){header + before, FRAME_BYTES - before};
    if (transfer->frame.length > 0)
        pieces[count++] = (struct span){(uint8_t *)transfer->payload + into, transfer->frame.length - into};
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

/* A peer whose frame is in may still die while others are late: better known now than a round later. One that
 * has been sent its last frame may leave. */
static void sleep_for(struct transfer *transfers, struct waiting *waiting, size_t count, struct deadline deadline)
{
    for (size_t i = 0; i < count; i++) {
        bool done = exchange_is_done(transfers + i);
        int16_t wanted = transfers[i].sending ? WAIT_WRITE : WAIT_READ;
        waiting[i].file = done && transfers[i].sending ? -1 : transfers[i].socket;
        waiting[i].wanted = done ? WAIT_GONE : wanted;
        waiting[i].came = 0;
    }
    net_wait(waiting, count, deadline, INT64_MAX);
    for (size_t i = 0; i < count; i++)
        if (exchange_is_done(transfers + i) && net_is_gone(waiting + i))
            refuse("peer-lost");
}

void exchange_run(struct transfer *transfers, struct waiting *waiting, size_t count, struct deadline deadline)
{
    size_t looks = 0;
    for (;;) {
        bool moved = false;
        bool lost = false;
        size_t open = 0;
        for (size_t i = 0; i < count; i++) {
            if (exchange_is_done(transfers + i))
                continue;
            moved |= exchange_move(transfers + i, &lost);
            open += !exchange_is_done(transfers + i);
        }
        /* A role that was stopped past its deadline finds that out first, whatever came meanwhile. */
        if (lost || open == 0) {
            (void)clock_left_ms(deadline);
            if (lost)
                refuse("peer-lost");
            return;
        }
        looks = moved ? 0 : looks + open;
        if (looks >= LOOKS_BEFORE_SLEEP)
            sleep_for(transfers, waiting, count, deadline);
        else if (!moved) /* the peer that is waited for may need this very core */
            (void)system_call(CALL_YIELD, 0, 0, 0, 0, 0);
    }
}
