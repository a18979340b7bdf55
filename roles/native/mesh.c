#include "mesh.h"

#include "hello.h"
#include "learner.h"
#include "meeting.h"
#include "memory.h"
#include "peers.h"
#include "schedule.h"

#if IS_MESH_POSSIBLE

#define IS_STAR (FAN_OUT + 1u >= ROLE_COUNT)

enum { MOST_INBOX_WORDS = 1 << 14 }; /* so much of each other role's words fits the caches */
enum { INBOX_WORDS = COMBINED_WORDS < MOST_INBOX_WORDS ? COMBINED_WORDS : MOST_INBOX_WORDS };
enum { LATER_ROLES = ROLE_COUNT - 1 - ROLE_INDEX };

static int mesh_sockets[ROLE_COUNT];
static word mesh_inbox[(ROLE_COUNT - 1) * INBOX_WORDS];
static struct mesh mesh = {
    .sockets = mesh_sockets,
    .role = ROLE_INDEX,
    .count = ROLE_COUNT,
    .fan_out = FAN_OUT,
    .inbox = mesh_inbox,
    .inbox_words = INBOX_WORDS,
};

/* Where every role listens: up the tree come those of each subtree, down goes the whole. */
static void exchange_places(struct endpoint places[ROLE_COUNT])
{
    static struct endpoint below[CHILD_COUNT + 1][ROLE_COUNT];
    enum { BYTES = ROLE_COUNT * sizeof *places };
    if (HAS_CHILDREN)
        peers_receive_up(FRAME_PLACES, 0, below, BYTES);
    for (uint32_t child = 0; child < CHILD_COUNT; child++)
        for (uint32_t role = 0; role < ROLE_COUNT; role++)
            if (below[child][role].port != 0)
                places[role] = below[child][role];
    if (!IS_ROOT) {
        peers_send_up(FRAME_PLACES, 0, places, BYTES);
        peers_receive_down(FRAME_PLACES, 0, places, BYTES);
    }
    if (HAS_CHILDREN)
        peers_send_down(FRAME_PLACES, 0, places, BYTES);
}

/* Every role dials those before it, one after the other, and then lets in those behind it: the first one waits for
 * nobody, and so all come to their end. */
static void connect_all(const struct binding *binding, uint64_t start)
{
    static struct endpoint places[ROLE_COUNT];
    struct hello hello;
    hello_begin(&hello, binding, start);
    if (LATER_ROLES > 0) {
        struct endpoint anywhere = peers_place();
        anywhere.port = 0;
        meeting_listen(&anywhere);
        places[ROLE_INDEX] = meeting_place();
    }
    exchange_places(places);
    struct deadline deadline = clock_deadline(clock_monotonic_ms(), binding->connect_ms, "connect-deadline");
    for (uint32_t role = 0; role < ROLE_INDEX; role++)
        if (mesh_sockets[role] < 0)
            mesh_sockets[role] = meeting_join(places + role, role, &hello, deadline);
    meeting_gather(mesh_sockets + ROLE_INDEX + 1, ROLE_INDEX + 1, LATER_ROLES, peers_socket(PARENT), &hello, deadline);
}

void mesh_open(const struct binding *binding, uint64_t start)
{
    mesh.frame = *peers_frame();
    mesh.is_whole = binding->mesh != 0;
    mesh.may_leave = binding->mode == MODE_EVALUATE;
    for (uint32_t role = 0; role < ROLE_COUNT; role++)
        mesh_sockets[role] = peers_socket(role);
    if (mesh.is_whole && ROLE_COUNT > 2)
        connect_all(binding, start);
}

bool mesh_combine(uint64_t round, word *words, uint64_t count)
{
    if (!mesh.is_whole && !IS_STAR)
        return false;
    schedule_run(&mesh, schedule_for(&mesh, count), round, words, count, peers_deadline());
    peers_have_begun();
    return true;
}

#else

void mesh_open(const struct binding *binding, uint64_t start)
{
    (void)binding, (void)start;
}

bool mesh_combine(uint64_t round, word *words, uint64_t count)
{
    (void)round, (void)words, (void)count;
    return false;
}

#endif
