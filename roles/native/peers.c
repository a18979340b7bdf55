#include "peers.h"

#include "exchange.h"
#include "files.h"
#include "hello.h"
#include "meeting.h"
#include "net.h"

enum { UP = CHILD_COUNT }; /* the parent's place, behind the children's */

static struct {
    int sockets[CHILD_COUNT + 1];
    struct frame frame;       /* what all frames of the run have in common */
    uint64_t round_ms;
    int64_t patience_from_ms; /* no wait is counted from before this */
} peers;

static struct transfer transfers[CHILD_COUNT + 1];
static struct waiting waiting[CHILD_COUNT + 1];

void peers_meet(const struct binding *binding, uint64_t start)
{
    int64_t now = clock_monotonic_ms();
    struct deadline deadline = clock_deadline(now, binding->connect_ms, "connect-deadline");
    struct hello hello;
    hello_begin(&hello, binding, start);
    frame_begin(&peers.frame, binding->plan, binding->epoch);
    peers.round_ms = binding->round_ms;
    for (uint32_t peer = 0; peer <= UP; peer++)
        peers.sockets[peer] = -1;
    if (HAS_CHILDREN) {
        meeting_listen(&binding->endpoint);
        system_close(files_create("listening"));
    }
    if (!IS_ROOT)
        peers.sockets[UP] = meeting_join(&binding->parent, PARENT, &hello, deadline);
    meeting_gather(peers.sockets, FIRST_CHILD, CHILD_COUNT, peers.sockets[UP], &hello, deadline);
    /* Others may wait for a later role until their own connect deadlines; the first round begins after that. Whom
     * the root alone waits for has come. */
    if (!IS_ROOT || FIRST_CHILD * FAN_OUT + 1 < ROLE_COUNT)
        peers.patience_from_ms = now + (int64_t)binding->connect_ms;
}

static struct transfer *prepare(uint32_t peer, bool sending, uint32_t kind, uint64_t round, uint64_t length)
{
    struct transfer *transfer = transfers + peer;
    uint32_t role = peer == UP ? PARENT : FIRST_CHILD + peer;
    transfer->socket = peers.sockets[peer];
    transfer->sending = sending;
    transfer->frame = peers.frame;
    transfer->frame.round = round;
    transfer->frame.sender = sending ? ROLE_INDEX : role;
    transfer->frame.kind = kind;
    transfer->frame.length = length;
    transfer->done = 0;
    return transfer;
}

struct deadline peers_deadline(void)
{
    int64_t from = clock_monotonic_ms();
    if (from < peers.patience_from_ms)
        from = peers.patience_from_ms;
    return clock_deadline(from, peers.round_ms, "round-deadline");
}

void peers_have_begun(void)
{
    peers.patience_from_ms = 0;
}

int peers_socket(uint32_t role)
{
    uint32_t child = role - FIRST_CHILD;
    if (child < CHILD_COUNT)
        return peers.sockets[child];
    return !IS_ROOT && role == PARENT ? peers.sockets[UP] : -1;
}

struct endpoint peers_place(void)
{
    return net_place(peers.sockets[IS_ROOT ? 0 : UP]);
}

const struct frame *peers_frame(void)
{
    return &peers.frame;
}

static void run(uint32_t first, uint32_t count)
{
    const struct exchange exchange = {transfers + first, waiting, count, exchange_looks(ROLE_COUNT), NULL};
    exchange_run(&exchange, peers_deadline());
}

static void *unchanged(const void *payload)
{
    return (void *)(uintptr_t)payload; /* a transfer that sends only reads */
}

static void send(uint32_t peer, uint32_t kind, uint64_t round, const void *payload, uint64_t length)
{
    prepare(peer, true, kind, round, length)->payload = unchanged(payload);
    run(peer, 1);
}

static void receive(uint32_t peer, uint32_t kind, uint64_t round, void *payload, uint64_t length)
{
    prepare(peer, false, kind, round, length)->payload = payload;
    run(peer, 1);
}

void peers_send_up(uint32_t kind, uint64_t round, const void *payload, uint64_t length)
{
    send(UP, kind, round, payload, length);
}

void peers_receive_down(uint32_t kind, uint64_t round, void *payload, uint64_t length)
{
    receive(UP, kind, round, payload, length);
    peers_have_begun(); /* what comes down has been everywhere */
}

static void prepare_down(uint32_t kind, uint64_t round, const void *payload, uint64_t length)
{
    for (uint32_t child = 0; child < CHILD_COUNT; child++)
        prepare(child, true, kind, round, length)->payload = unchanged(payload);
}

void peers_send_down(uint32_t kind, uint64_t round, const void *payload, uint64_t length)
{
    prepare_down(kind, round, payload, length);
    run(0, CHILD_COUNT);
}

void peers_receive_up(uint32_t kind, uint64_t round, void *payloads, uint64_t length)
{
    for (uint32_t child = 0; child < CHILD_COUNT; child++)
        prepare(child, false, kind, round, length)->payload = (uint8_t *)payloads + child * length;
    run(0, CHILD_COUNT);
    if (IS_ROOT)
        peers_have_begun();
}

void peers_send_to(uint32_t child, uint32_t kind, uint64_t round, const void *payload, uint64_t length)
{
    send(child, kind, round, payload, length);
}

void peers_receive_from(uint32_t child, uint32_t kind, uint64_t round, void *payload, uint64_t length)
{
    receive(child, kind, round, payload, length);
}

void peers_tell_down(uint32_t kind, uint64_t round, const void *payload, uint64_t length)
{
    prepare_down(kind, round, payload, length);
    for (uint32_t child = 0; child < CHILD_COUNT; child++) {
        bool lost = false;
        (void)exchange_move(transfers + child, &lost);
    }
}
