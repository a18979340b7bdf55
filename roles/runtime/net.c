#include "net.h"

#include "memory.h"
#include "refuse.h"

enum { FAMILY_4 = 2, FAMILY_6 = 10, STREAM_NONBLOCK_CLOEXEC = 1 | 0x800 | 0x80000 };
enum { LEVEL_SOCKET = 1, REUSE_ADDRESS = 2, SOCKET_ERROR = 4, KEEP_ALIVE = 9, LEVEL_TCP = 6, NO_DELAY = 1 };
enum { ERRORS = 8, HANGUP = 16 };

struct name {
    uint8_t bytes[28];
    long size;
};

static struct name name_of(const struct endpoint *endpoint)
{
    struct name name = {{0}, endpoint->family == 4 ? 16 : 28};
    name.bytes[0] = endpoint->family == 4 ? FAMILY_4 : FAMILY_6;
    name.bytes[2] = (uint8_t)(endpoint->port >> 8);
    name.bytes[3] = (uint8_t)endpoint->port;
    if (endpoint->family == 4)
        memcpy(name.bytes + 4, endpoint->address, 4);
    else
        memcpy(name.bytes + 8, endpoint->address, 16); /* after the flow label, which stays zero */
    return name;
}

static int open_socket(const struct endpoint *endpoint)
{
    long family = endpoint->family == 4 ? FAMILY_4 : FAMILY_6;
    return (int)system_call(CALL_SOCKET, family, STREAM_NONBLOCK_CLOEXEC, 0, 0, 0);
}

static void set(int socket, long level, long option)
{
    int32_t on = 1;
    (void)system_call(CALL_SETSOCKOPT, socket, level, option, system_pointer(&on), sizeof on);
}

static void set_options(int socket)
{
    set(socket, LEVEL_TCP, NO_DELAY);
    set(socket, LEVEL_SOCKET, KEEP_ALIVE);
}

int net_listen(const struct endpoint *endpoint, int backlog)
{
    struct name name = name_of(endpoint);
    int socket = open_socket(endpoint);
    set(socket, LEVEL_SOCKET, REUSE_ADDRESS);
    long result = system_call(CALL_BIND, socket, system_pointer(name.bytes), name.size, 0, 0);
    if (result == 0)
        result = system_call(CALL_LISTEN, socket, backlog, 0, 0, 0);
    if (result != 0)
        refuse(result == -ERROR_ADDRINUSE ? "port-in-use" : "connect-deadline");
    return socket;
}

struct endpoint net_place(int socket)
{
    struct name name = {{0}, sizeof name.bytes};
    struct endpoint endpoint = {0};
    int32_t size = sizeof name.bytes;
    (void)system_call(CALL_GETSOCKNAME, socket, system_pointer(name.bytes), system_pointer(&size), 0, 0);
    endpoint.family = name.bytes[0] == FAMILY_4 ? 4 : 6;
    endpoint.port = (uint32_t)name.bytes[2] << 8 | name.bytes[3];
    if (endpoint.family == 4)
        memcpy(endpoint.address, name.bytes + 4, 4);
    else
        memcpy(endpoint.address, name.bytes + 8, 16);
    return endpoint;
}

int net_accept(int listener)
{
    long socket = system_call(CALL_ACCEPT4, listener, 0, 0, STREAM_NONBLOCK_CLOEXEC & ~1, 0);
    if (socket < 0)
        return -1;
    set_options((int)socket);
    return (int)socket;
}

static bool is_connected(int socket, struct deadline deadline)
{
    struct waiting waiting = {socket, WAIT_WRITE, 0};
    int32_t error = 0;
    int32_t size = sizeof error;
    while (waiting.came == 0)
        net_wait(&waiting, 1, deadline, INT64_MAX);
    (void)system_call(CALL_GETSOCKOPT, socket, LEVEL_SOCKET, SOCKET_ERROR, system_pointer(&error),
                      system_pointer(&size));
    return error == 0;
}

int net_connect(const struct endpoint *endpoint, struct deadline deadline)
{
    struct name name = name_of(endpoint);
    int socket = open_socket(endpoint);
    if (socket < 0)
        return -1;
    set_options(socket);
    long result = system_call(CALL_CONNECT, socket, system_pointer(name.bytes), name.size, 0, 0);
    if (result == 0 || (result == -ERROR_INPROGRESS && is_connected(socket, deadline)))
        return socket;
    system_close(socket);
    return -1;
}

void net_wait(struct waiting *waiting, size_t count, struct deadline deadline, int64_t at_most_ms)
{
    int64_t left = clock_left_ms(deadline);
    if (left > at_most_ms)
        left = at_most_ms;
    struct moment span = {left / 1000, left % 1000 * 1000000};
    if (system_call(CALL_PPOLL, system_pointer(waiting), (long)count, system_pointer(&span), 0, 8) < 0)
        for (size_t i = 0; i < count; i++) /* interrupted: the kernel has written nothing */
            waiting[i].came = 0;
    (void)clock_left_ms(deadline);
}

bool net_is_gone(const struct waiting *waiting)
{
    return (waiting->came & (WAIT_GONE | ERRORS | HANGUP)) != 0;
}

long net_move(int socket, bool sending, struct span *pieces, size_t count)
{
    long call = sending ? CALL_WRITEV : CALL_READV;
    long moved = system_call(call, socket, system_pointer(pieces), (long)count, 0, 0);
    if (moved == -ERROR_AGAIN || moved == -ERROR_INTR)
        return 0;
    return moved <= 0 ? -1 : moved;
}
