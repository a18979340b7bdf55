#include "machine.h"

#include <string.h>

#include "clock.h"
#include "files.h"
#include "net.h"
#include "refuse.h"

struct machine machine;
void (*refuse_undo)(void);

static size_t places[MOST_FILES]; /* where reading has come to */

void refuse(const char *label)
{
    machine.label = label;
    longjmp(machine.refused, 1);
}

int64_t clock_monotonic_ms(void)
{
    return 0;
}

int64_t clock_wall_ms(void)
{
    return 0;
}

void clock_bound_run(uint64_t run_ms)
{
    (void)run_ms;
}

struct deadline clock_deadline(int64_t from_ms, uint64_t span_ms, const char *label)
{
    (void)from_ms, (void)span_ms;
    return (struct deadline){INT64_MAX, label};
}

int64_t clock_left_ms(struct deadline deadline)
{
    (void)deadline;
    return 1;
}

void clock_check_run(void)
{
}

/* Descriptors are past those that a process has: closing one, which is the role's own call, does nothing. */
enum { FIRST_FILE = 1 << 20, FIRST_SOCKET = 1 << 21, LISTENER = 1 << 22 };

int files_open(const char *name, uint64_t *size)
{
    for (size_t i = 0; i < machine.file_count; i++)
        if (strcmp(machine.files[i].name, name) == 0) {
            places[i] = 0;
            *size = machine.files[i].size;
            return FIRST_FILE + (int)i;
        }
    return -1;
}

bool files_read_at(int file, void *bytes, size_t size, uint64_t at)
{
    const struct fake_file *open = machine.files + (file - FIRST_FILE);
    if (at > open->size || size > open->size - at)
        return false;
    memcpy(bytes, open->bytes + at, size);
    return true;
}

bool files_read(int file, void *bytes, size_t size)
{
    size_t *at = places + (file - FIRST_FILE);
    if (!files_read_at(file, bytes, size, *at))
        return false;
    *at += size;
    return true;
}

/* Nothing is kept of what a role writes. */
int files_create(const char *name)
{
    (void)name;
    return FIRST_FILE + MOST_FILES;
}

int files_append_to(const char *name)
{
    return files_create(name);
}

void files_write(int file, const void *bytes, size_t size)
{
    (void)file, (void)bytes, (void)size;
}

void files_make_folder(const char *name)
{
    (void)name;
}

void files_publish(int file, const char *temporary, const char *name, const char *folder)
{
    (void)file, (void)temporary, (void)name, (void)folder;
}

void files_remove(const char *name)
{
    (void)name;
}

int net_listen(const struct endpoint *endpoint, int backlog)
{
    (void)endpoint, (void)backlog;
    return LISTENER;
}

struct endpoint net_place(int socket)
{
    (void)socket;
    return (struct endpoint){4, 0, {0}};
}

int net_accept(int listener)
{
    (void)listener;
    return machine.accepted < machine.socket_count ? FIRST_SOCKET + (int)machine.accepted++ : -1;
}

int net_connect(const struct endpoint *endpoint, struct deadline deadline)
{
    (void)endpoint, (void)deadline;
    return net_accept(LISTENER);
}

void net_wait(struct waiting *waiting, size_t count, struct deadline deadline, int64_t at_most_ms)
{
    (void)at_most_ms;
    if (machine.patience-- == 0)
        refuse(deadline.label);
    for (size_t i = 0; i < count; i++)
        waiting[i].came = 0;
}

bool net_is_gone(const struct waiting *waiting)
{
    return (waiting->came & WAIT_GONE) != 0;
}

static long give(struct fake_socket *from, const struct span *piece)
{
    size_t left = from->size - from->at;
    size_t size = piece->size < from->piece ? piece->size : from->piece;
    if (size > left)
        size = left;
    memcpy(piece->bytes, from->bytes + from->at, size);
    from->at += size;
    return (long)size;
}

long net_move(int socket, bool sending, struct span *pieces, size_t count)
{
    long moved = 0;
    struct fake_socket *other = machine.sockets + (socket - FIRST_SOCKET);
    DEMAND(socket >= FIRST_SOCKET && (size_t)(socket - FIRST_SOCKET) < machine.socket_count);
    for (size_t i = 0; i < count; i++) {
        if (sending) {
            volatile uint8_t last = 0; /* what is sent is read, so that a span that is not there is noticed */
            for (size_t at = 0; at < pieces[i].size; at++)
                last ^= ((uint8_t *)pieces[i].bytes)[at];
            moved += (long)pieces[i].size;
            continue;
        }
        long got = give(other, pieces + i);
        moved += got;
        if ((size_t)got < pieces[i].size)
            break;
    }
    return !sending && moved == 0 && other->at == other->size ? -1 : moved;
}
