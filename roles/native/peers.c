#include "peers.h"

#include "exchange.h"
#include "hello.h"
#include "meeting.h"
#include "net.h"

static struct {
    int sockets[PEER_COUNT + 1];
    struct frame frame;       /* what all frames of the run have in common */
    uint64_t round_ms;
    int64_t patience_from_ms; /* no wait is counted from before this */
} peers;

static struct transfer transfers[PEER_COUNT + 1];
static struct waiting waiting[PEER_COUNT + 1];

void peers_meet(const struct binding *binding, uint64_t start)
{
    int64_t now = clock_monotonic_ms();
    struct deadline deadline = clock_deadline(now, binding->connect_ms, "connect-deadline");
    struct hello hello;
    hello_begin(&hello, binding, start);
    frame_begin(&peers.frame, binding->plan, binding->epoch);
    peers.round_ms = binding->round_ms;
    if (IS_ROOT) {
        meeting_gather(peers.sockets, &binding->endpoint, &hello, deadline);
    } else {
        peers.sockets[0] = meeting_join(&binding->parent, &hello, deadline);
        /* The root may wait for a later role until its own connect deadline; the first round begins after it. */
        peers.patience_from_ms = now + (int64_t)binding->connect_ms;
    }
}

static void prepare(bool sending, uint32_t kind, uint64_t round, void *payloads, uint64_t length)
{
    for (uint32_t i = 0; i < PEER_COUNT; i++) {
        struct transfer *transfer = transfers + i;
        transfer->socket = peers.sockets[i];
        transfer->sending = sending;
        transfer->frame = peers.frame;
        transfer->frame.round = round;
        transfer->frame.sender = sending ? ROLE_INDEX : IS_ROOT ? i + 1 : 0;
        transfer->frame.kind = kind;
        transfer->frame.length = length;
        transfer->payload = (uint8_t *)payloads + (sending ? 0 : i * length);
        transfer->done = 0;
    }
}

static void run(void)
{
    int64_t from = clock_monotonic_ms();
    if (from < peers.patience_from_ms)
        from = peers.patience_from_ms;
    const struct exchange exchange = {transfers, waiting, PEER_COUNT, exchange_looks(ROLE_COUNT), NULL};
    exchange_run(&exchange, clock_deadline(from, peers.round_ms, "round-deadline"));
}

static void *unchanged(const void *payload)
{
    return (void *)(uintptr_t)payload; /* a transfer that sends only reads */
}

void peers_send(uint32_t kind, uint64_t round, const void *payload, uint64_t length)
{
    prepare(true, kind, round, unchanged(payload), length);
    run();
}

void peers_receive(uint32_t kind, uint64_t round, void *payloads, uint64_t length)
{
    prepare(false, kind, round, payloads, length);
    run();
    peers.patience_from_ms = 0; /* a frame came: the round has begun */
}

void peers_tell(uint32_t kind, uint64_t round, const void *payload, uint64_t length)
{
    prepare(true, kind, round, unchanged(payload), length);
    for (uint32_t i = 0; i < PEER_COUNT; i++) {
        bool lost = false;
        (void)exchange_move(transfers + i, &lost);
    }
}
