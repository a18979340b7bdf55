#include "schedule.h"

#include "exchange.h"

enum { BLOCK_WORDS = 512, FLOWS = 4, TRANSFERS = FLOWS * (MESH_ROLES - 1) };

/* One role's part in a round: the words that it adds. */
struct slice {
    uint64_t first;
    uint64_t count;
};

/* The round under way. */
static struct {
    const struct mesh *mesh;
    word *words;
    struct slice own;          /* what this role adds */
    uint64_t added;            /* words of `own` that are totals */
    size_t may_send;           /* bytes of them */
    size_t may_receive;        /* bytes of others' words for `own` that there is room for */
    struct transfer *from[MESH_ROLES]; /* others' words for `own`; NULL: none come */
    struct transfer *to[MESH_ROLES];   /* own words to others, where they are added there; NULL: none go */
    struct transfer transfers[TRANSFERS];
    struct waiting waiting[TRANSFERS];
    size_t used;
} sum;

/* A few words side by side in the machine's vector registers: each sum is one word's own. */
typedef word lanes __attribute__((vector_size(16), aligned(sizeof(word)), may_alias));

enum { LANES = sizeof(lanes) / sizeof(word), STEP = 4 * LANES };

static void add(word *out, const word *left, const word *right, uint64_t count)
{
    uint64_t at = 0;
    for (; at + STEP <= count; at += STEP) {
        lanes *to = (lanes *)(out + at);
        const lanes *a = (const lanes *)(left + at);
        const lanes *b = (const lanes *)(right + at);
        lanes sums[4] = {a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]};
        to[0] = sums[0];
        to[1] = sums[1];
        to[2] = sums[2];
        to[3] = sums[3];
    }
    for (; at < count; at++)
        out[at] = left[at] + right[at];
}

/* Adds `count` words of every role, up the tree from its last inner node. at[i] are role i's words, and become the
 * sums of its subtree; the root's last addition gives the total. */
static void add_tree(word *at[MESH_ROLES], word *total, uint64_t count)
{
    uint32_t roles = sum.mesh->count;
    uint32_t fan_out = sum.mesh->fan_out;
    for (uint32_t node = (roles - 2) / fan_out + 1; node-- > 0;)
        for (uint32_t child = node * fan_out + 1; child <= node * fan_out + fan_out && child < roles; child++)
            add(node == 0 && (child == fan_out || child == roles - 1) ? total : at[node], at[node], at[child],
                count);
}

/* Words of `own` that have come from everybody and, since sums replace the own words, have gone to everybody. */
static uint64_t ready(void)
{
    uint64_t least = sum.own.count;
    for (uint32_t role = 0; role < sum.mesh->count; role++) {
        const struct transfer *both[2] = {sum.from[role], sum.to[role]};
        for (uint32_t way = 0; way < 2; way++)
            if (both[way] && exchange_moved(both[way]) / sizeof(word) < least)
                least = exchange_moved(both[way]) / sizeof(word);
    }
    return least;
}

static void work(void)
{
    const struct mesh *mesh = sum.mesh;
    uint64_t until = ready();
    while (sum.added < until) {
        uint64_t in_ring = sum.added % mesh->inbox_words;
        uint64_t count = until - sum.added < BLOCK_WORDS ? until - sum.added : BLOCK_WORDS;
        word *own = sum.words + sum.own.first + sum.added;
        word *at[MESH_ROLES];
        if (count > mesh->inbox_words - in_ring)
            count = mesh->inbox_words - in_ring;
        for (uint32_t role = 0; role < mesh->count; role++)
            at[role] = role == mesh->role ? own : (word *)sum.from[role]->payload + in_ring;
        add_tree(at, own, count);
        sum.added += count;
    }
    sum.may_send = sum.added * sizeof(word);
    sum.may_receive = (sum.added + mesh->inbox_words) * sizeof(word);
}

/* The words that a role adds. Slices differ by at most one word. */
static struct slice slice_of(enum schedule schedule, uint32_t role, uint64_t words)
{
    uint32_t roles = sum.mesh->count;
    uint64_t each = words / roles;
    uint64_t more = words % roles;
    if (schedule == SCHEDULE_GATHER || (schedule == SCHEDULE_ROOT && role == 0))
        return (struct slice){0, words};
    if (schedule == SCHEDULE_ROOT)
        return (struct slice){0, 0};
    return (struct slice){role * each + (role < more ? role : more), each + (role < more)};
}

/* The transfer of words in one way; none where there are no words. */
static struct transfer *flow(uint32_t peer, bool sending, uint32_t kind, uint64_t number, struct slice slice)
{
    struct transfer *transfer = sum.transfers + sum.used;
    if (slice.count == 0)
        return NULL;
    sum.used++;
    *transfer = (struct transfer){
        .socket = sum.mesh->sockets[peer],
        .sending = sending,
        .may_leave = sum.mesh->may_leave,
        .frame = sum.mesh->frame,
        .payload = sum.words + slice.first,
    };
    transfer->frame.kind = kind;
    transfer->frame.round = number;
    transfer->frame.sender = sending ? sum.mesh->role : peer;
    transfer->frame.length = slice.count * sizeof(word);
    return transfer;
}

static void plan_peer(enum schedule schedule, uint32_t peer, uint64_t number, uint64_t words)
{
    const struct mesh *mesh = sum.mesh;
    struct slice theirs = slice_of(schedule, peer, words);
    struct transfer *out = flow(peer, true, FRAME_CONTRIBUTION, number, theirs);
    struct transfer *in = flow(peer, false, FRAME_CONTRIBUTION, number, sum.own);
    sum.from[peer] = in;
    sum.to[peer] = schedule == SCHEDULE_GATHER ? out : NULL;
    if (in) {
        in->payload = mesh->inbox + (peer - (peer > mesh->role)) * mesh->inbox_words;
        in->ring = mesh->inbox_words * sizeof(word);
        in->most = &sum.may_receive;
    }
    if (schedule == SCHEDULE_GATHER)
        return;
    struct transfer *total_out = flow(peer, true, FRAME_TOTAL, number, sum.own);
    struct transfer *total_in = flow(peer, false, FRAME_TOTAL, number, theirs);
    if (total_out) {
        total_out->most = &sum.may_send;
        total_out->after = out;
    }
    if (total_in)
        total_in->after = in;
}

void schedule_run(const struct mesh *mesh, enum schedule schedule, uint64_t number, word *words, uint64_t count,
                  struct deadline deadline)
{
    sum.mesh = mesh;
    sum.words = words;
    sum.own = slice_of(schedule, mesh->role, count);
    sum.added = 0;
    sum.may_send = 0;
    sum.may_receive = mesh->inbox_words * sizeof(word);
    sum.used = 0;
    for (uint32_t step = 1; step < mesh->count; step++) /* each begins with another peer */
        plan_peer(schedule, (mesh->role + step) % mesh->count, number, count);
    const struct exchange exchange = {sum.transfers, sum.waiting, sum.used, exchange_looks(mesh->count), work};
    exchange_run(&exchange, deadline);
}

/* Measured on loopback. Two roles send each other as many bytes either way, so that the fewest messages win. */
enum { GATHERED_BYTES = 1 << 17, BYTES_AT_ROOT = 1 << 20 };

enum schedule schedule_for(const struct mesh *mesh, uint64_t words)
{
    uint64_t size = words * sizeof(word);
    if (!mesh->is_whole)
        return SCHEDULE_ROOT;
    if (mesh->count == 2 && size <= GATHERED_BYTES)
        return SCHEDULE_GATHER;
    return size * (mesh->count - 1) <= BYTES_AT_ROOT ? SCHEDULE_ROOT : SCHEDULE_SLICES;
}
