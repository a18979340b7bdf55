/* Rounds of the combine, and nothing else of a role: combine_role ROLE ROLES FAN_OUT SCHEDULE WORDS ROUNDS SOCKET...
 *
 * SOCKET is an open connection to each role, in their order; the own one is not looked at. SCHEDULE is one of
 * schedule.h's, or as many as there are for the one that it chooses. Prints nanoseconds of ROUNDS rounds over zeros,
 * after at most eight that are not counted; with ROUNDS 0, takes its words from standard input and gives the total's. */
#include "files.h"
#include "memory.h"
#include "refuse.h"
#include "schedule.h"
#include "system.h"
#include "text.h"

enum { STDIN = 0, STDOUT = 1, MOST_WORDS = 1 << 23, INBOX_WORDS = 1 << 14, DEADLINE_MS = 60000 };

static word words[MOST_WORDS];
static word inbox[(MESH_ROLES - 1) * INBOX_WORDS];
static int sockets[MESH_ROLES];
static struct mesh mesh;

static uint64_t number(const char *digits)
{
    uint64_t value = 0;
    for (; *digits >= '0' && *digits <= '9'; digits++)
        value = value * 10 + (uint64_t)(*digits - '0');
    return value;
}

static int64_t now_ns(void)
{
    struct moment now = {0, 0};
    (void)system_call(CALL_CLOCK, 1, system_pointer(&now), 0, 0, 0);
    return now.seconds * 1000000000 + now.nanoseconds;
}

static void one(uint64_t schedule, uint64_t round, uint64_t count)
{
    enum schedule chosen = schedule > SCHEDULE_ROOT ? schedule_for(&mesh, count) : (enum schedule)schedule;
    struct deadline deadline = clock_deadline(clock_monotonic_ms(), DEADLINE_MS, "round-deadline");
    schedule_run(&mesh, chosen, round, words, count, deadline);
}

static void give_total(uint64_t schedule, uint64_t count)
{
    if (!files_read(STDIN, words, count * sizeof(word)))
        refuse("data-chunk");
    one(schedule, 1, count);
    files_write(STDOUT, words, count * sizeof(word));
}

static void give_time(uint64_t schedule, uint64_t count, uint64_t rounds)
{
    char line[32];
    struct text text = {line, sizeof line, 0};
    uint64_t uncounted = rounds < 8 ? rounds : 8;
    for (uint64_t round = 0; round < uncounted; round++)
        one(schedule, round, count);
    int64_t begun = now_ns();
    for (uint64_t round = 0; round < rounds; round++)
        one(schedule, uncounted + round, count);
    text_put(&text, "%u\n", (uint64_t)(now_ns() - begun));
    files_write(STDOUT, line, text.used);
}

__attribute__((noreturn, used)) void start_main(const uintptr_t *stack)
{
    const char *const *arguments = (const char *const *)(stack + 2);
    const uint8_t plan[32] = {0xab};
    uint64_t schedule = number(arguments[3]);
    uint64_t count = number(arguments[4]);
    uint64_t rounds = number(arguments[5]);
    mesh.sockets = sockets;
    mesh.role = (uint32_t)number(arguments[0]);
    mesh.count = (uint32_t)number(arguments[1]);
    mesh.fan_out = (uint32_t)number(arguments[2]);
    mesh.is_whole = true;
    mesh.may_leave = true;
    mesh.inbox = inbox;
    mesh.inbox_words = INBOX_WORDS;
    if (mesh.count > MESH_ROLES || count > MOST_WORDS || stack[0] != 7 + mesh.count)
        refuse("binding");
    for (uint32_t role = 0; role < mesh.count; role++)
        sockets[role] = (int)number(arguments[6 + role]);
    frame_begin(&mesh.frame, plan, 1);
    if (rounds > 0)
        give_time(schedule, count, rounds);
    else
        give_total(schedule, count);
    system_exit(0);
}

MACHINE_ENTRY
