#include "meeting.h"

#include "files.h"
#include "memory.h"
#include "net.h"
#include "peers.h"
#include "refuse.h"

/* A connection whose hello is not yet whole. */
struct caller {
    int socket;
    uint32_t turn; /* callers before it */
    size_t got;
    struct hello hello;
};

static void check(const char *label)
{
    if (label)
        refuse(label);
}

/* Takes what has come of a hello; false if the caller is gone. */
static bool listen_to(struct caller *caller)
{
    while (caller->got < HELLO_BYTES) {
        struct span rest = {(uint8_t *)&caller->hello + caller->got, HELLO_BYTES - caller->got};
        long moved = net_move(caller->socket, false, &rest, 1);
        if (moved < 0)
            return false;
        if (moved == 0)
            break;
        caller->got += (size_t)moved;
    }
    return true;
}

static bool is_heard(const struct caller *caller)
{
    return caller->got == HELLO_BYTES;
}

static bool greet(int socket, const struct hello *own)
{
    struct hello hello = *own;
    struct span whole = {&hello, HELLO_BYTES};
    return net_move(socket, true, &whole, 1) == HELLO_BYTES;
}

enum { STRANGERS = 16, MOST_AWAITED = IS_MESH_POSSIBLE ? ROLE_COUNT - 1 : CHILD_COUNT };
enum { CALLERS = MOST_AWAITED + STRANGERS };

static struct caller callers[CALLERS];
static struct waiting awaited[1 + CALLERS + MOST_AWAITED + 1];
static int listener;

/* The roles that may call: their sockets, and the first one's number. */
static struct {
    int *sockets;
    uint32_t first;
    uint32_t count;
} guests;

/* What was wrong first; said when all have come. */
static const char *fault;

static void note(const char *found)
{
    fault = fault ? fault : found;
}

static void drop(struct caller *caller)
{
    system_close(caller->socket);
    caller->socket = -1;
}

/* A free place; if there is none, the one of who has kept us waiting the longest. A role is not that one: its
 * hello comes with its connection. */
static struct caller *place_for_caller(void)
{
    struct caller *oldest = callers;
    for (size_t i = 0; i < CALLERS; i++) {
        if (callers[i].socket < 0)
            return callers + i;
        if (callers[i].turn < oldest->turn)
            oldest = callers + i;
    }
    drop(oldest);
    return oldest;
}

/* One at a time: who has said a whole hello has left its place before another needs it. */
static void accept_one(void)
{
    static uint32_t turn;
    int socket = net_accept(listener);
    if (socket < 0)
        return;
    struct caller *caller = place_for_caller();
    caller->socket = socket;
    caller->turn = turn++;
    caller->got = 0;
}

/* True if the caller is one of those that are waited for: a peer, or one that ends the run. */
static bool recognise(struct caller *caller, const struct hello *own)
{
    if (!listen_to(caller) || !frame_may_begin(&caller->hello, caller->got)) {
        drop(caller);
        return false;
    }
    if (!is_heard(caller))
        return false;
    /* Who is no role of this launch learns nothing. Who is one hears our hello before its own is checked, so that
     * of two that do not belong together both can say so. */
    if (!hello_is_of_launch(&caller->hello, own) || !greet(caller->socket, own)) {
        drop(caller);
        return false;
    }
    uint32_t sender = caller->hello.frame.sender;
    uint32_t guest = sender - guests.first;
    const char *found = hello_fault(&caller->hello, own, guest < guests.count ? sender : guests.first);
    if (!found && guests.sockets[guest] >= 0)
        found = "frame-identity";
    if (found)
        note(found);
    else
        guests.sockets[guest] = caller->socket;
    caller->socket = -1;
    return true;
}

/* A role that goes now is lost to the run; those that have not come yet are still waited for. */
static void wait_for_callers(int *watched, struct deadline deadline)
{
    size_t count = 0;
    awaited[count++] = (struct waiting){listener, WAIT_READ, 0};
    for (size_t i = 0; i < CALLERS; i++)
        awaited[count++] = (struct waiting){callers[i].socket, WAIT_READ, 0};
    size_t first_guest = count;
    for (size_t i = 0; i < guests.count; i++)
        awaited[count++] = (struct waiting){guests.sockets[i], WAIT_GONE, 0};
    awaited[count++] = (struct waiting){*watched, WAIT_GONE, 0};
    net_wait(awaited, count, deadline, INT64_MAX);
    for (size_t i = 0; i <= guests.count; i++) {
        if (!net_is_gone(awaited + first_guest + i))
            continue;
        note("peer-lost");
        *(i < guests.count ? guests.sockets + i : watched) = -1;
    }
}

void meeting_listen(const struct endpoint *endpoint)
{
    listener = net_listen(endpoint, CALLERS);
}

struct endpoint meeting_place(void)
{
    return net_place(listener);
}

void meeting_gather(int *sockets, uint32_t first, uint32_t count, int watched, const struct hello *own,
                    struct deadline deadline)
{
    size_t missing = 0;
    guests.sockets = sockets;
    guests.first = first;
    guests.count = count;
    for (size_t i = 0; i < CALLERS; i++)
        callers[i].socket = -1;
    for (size_t i = 0; i < count; i++)
        missing += sockets[i] < 0;
    while (missing > 0) {
        if (fault)
            deadline.label = fault;
        wait_for_callers(&watched, deadline);
        accept_one();
        for (size_t i = 0; i < CALLERS; i++)
            if (callers[i].socket >= 0 && recognise(callers + i, own))
                missing--;
    }
    check(fault);
    if (count == 0)
        return;
    for (size_t i = 0; i < CALLERS; i++)
        if (callers[i].socket >= 0)
            drop(callers + i);
    system_close(listener);
}

enum { FIRST_PAUSE_MS = 10, LONGEST_PAUSE_MS = 100 };

/* True once the other's hello is whole. A tunnel accepts before the parent listens and then hangs up, and a stranger
 * may listen before the parent does: they are no peer, and dialling goes on. */
static bool is_greeted(struct caller *other, const struct hello *own, struct deadline deadline)
{
    while (!is_heard(other)) {
        struct waiting waiting = {other->socket, WAIT_READ, 0};
        net_wait(&waiting, 1, deadline, INT64_MAX);
        if (!listen_to(other))
            return false;
    }
    return hello_is_of_launch(&other->hello, own);
}

int meeting_join(const struct endpoint *endpoint, uint32_t role, const struct hello *own, struct deadline deadline)
{
    int64_t pause = FIRST_PAUSE_MS;
    for (;;) {
        struct caller other = {.socket = net_connect(endpoint, deadline)};
        if (other.socket >= 0 && greet(other.socket, own) && is_greeted(&other, own, deadline)) {
            note(hello_fault(&other.hello, own, role));
            return other.socket;
        }
        if (other.socket >= 0)
            system_close(other.socket);
        net_wait(NULL, 0, deadline, pause);
        pause = pause * 2 < LONGEST_PAUSE_MS ? pause * 2 : LONGEST_PAUSE_MS;
    }
}
