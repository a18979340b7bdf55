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

enum { STRANGERS = 16, CALLERS = CHILD_COUNT + STRANGERS };

static struct caller callers[CALLERS];
static struct waiting awaited[1 + CALLERS + CHILD_COUNT + 1];
static int listener;

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
static bool recognise(struct caller *caller, int *sockets, const struct hello *own)
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
    uint32_t child = sender - FIRST_CHILD;
    bool is_child = child < CHILD_COUNT;
    const char *found = hello_fault(&caller->hello, own, is_child ? sender : FIRST_CHILD);
    if (!found && sockets[child] >= 0)
        found = "frame-identity";
    if (found)
        note(found);
    else
        sockets[child] = caller->socket;
    caller->socket = -1;
    return true;
}

/* The parent or a child that goes now is lost to the run; children that have not come yet are still waited for. */
static void wait_for_callers(int *sockets, int *parent, struct deadline deadline)
{
    size_t count = 0;
    awaited[count++] = (struct waiting){listener, WAIT_READ, 0};
    for (size_t i = 0; i < CALLERS; i++)
        awaited[count++] = (struct waiting){callers[i].socket, WAIT_READ, 0};
    size_t first_child = count;
    for (size_t i = 0; i < CHILD_COUNT; i++)
        awaited[count++] = (struct waiting){sockets[i], WAIT_GONE, 0};
    awaited[count++] = (struct waiting){*parent, WAIT_GONE, 0};
    net_wait(awaited, count, deadline, INT64_MAX);
    for (size_t i = 0; i <= CHILD_COUNT; i++) {
        if (!net_is_gone(awaited + first_child + i))
            continue;
        note("peer-lost");
        *(i < CHILD_COUNT ? sockets + i : parent) = -1;
    }
}

void meeting_listen(const struct endpoint *endpoint)
{
    listener = net_listen(endpoint, CALLERS);
    system_close(files_create("listening"));
}

void meeting_gather(int *sockets, int parent, const struct hello *own, struct deadline deadline)
{
    for (size_t i = 0; i < CALLERS; i++)
        callers[i].socket = -1;
    for (size_t i = 0; i < CHILD_COUNT; i++)
        sockets[i] = -1;
    for (size_t missing = CHILD_COUNT; missing > 0;) {
        if (fault)
            deadline.label = fault;
        wait_for_callers(sockets, &parent, deadline);
        accept_one();
        for (size_t i = 0; i < CALLERS; i++)
            if (callers[i].socket >= 0 && recognise(callers + i, sockets, own))
                missing--;
    }
    check(fault);
    if (!HAS_CHILDREN)
        return;
    for (size_t i = 0; i < CALLERS; i++)
        if (callers[i].socket >= 0)
            drop(callers + i);
    system_close(listener);
}

enum { FIRST_PAUSE_MS = 10, LONGEST_PAUSE_MS = 100 };

/* True once the parent's hello is whole. A tunnel accepts before the parent listens and then hangs up, and a stranger
 * may listen before the parent does: they are no peer, and dialling goes on. */
static bool is_greeted(struct caller *parent, const struct hello *own, struct deadline deadline)
{
    while (!is_heard(parent)) {
        struct waiting waiting = {parent->socket, WAIT_READ, 0};
        net_wait(&waiting, 1, deadline, INT64_MAX);
        if (!listen_to(parent))
            return false;
    }
    return hello_is_of_launch(&parent->hello, own);
}

int meeting_join(const struct endpoint *endpoint, const struct hello *own, struct deadline deadline)
{
    int64_t pause = FIRST_PAUSE_MS;
    for (;;) {
        struct caller parent = {.socket = net_connect(endpoint, deadline)};
        if (parent.socket >= 0 && greet(parent.socket, own) && is_greeted(&parent, own, deadline)) {
            note(hello_fault(&parent.hello, own, PARENT));
            return parent.socket;
        }
        if (parent.socket >= 0)
            system_close(parent.socket);
        net_wait(NULL, 0, deadline, pause);
        pause = pause * 2 < LONGEST_PAUSE_MS ? pause * 2 : LONGEST_PAUSE_MS;
    }
}
