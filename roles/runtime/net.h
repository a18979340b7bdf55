/* TCP sockets: non-blocking, without Nagle's delay, kept alive. Knows addresses, not what is said over them. */
#ifndef NET_H
#define NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "system.h"

struct endpoint {
    uint32_t family; /* 4 or 6 */
    uint32_t port;
    uint8_t address[16]; /* the first 4 bytes for IPv4 */
};

/* A listening socket. Refuses `port-in-use` if the port is taken, `connect-deadline` if the address is not
 * this machine's. */
int net_listen(const struct endpoint *endpoint, int backlog);

/* This side's address and port of a socket. */
struct endpoint net_place(int socket);

/* A connection that waits at the listener, or -1. */
int net_accept(int listener);

/* One attempt to connect, or -1. Refuses by the deadline. */
int net_connect(const struct endpoint *endpoint, struct deadline deadline);

/* Sleeps until something waited for has come, the deadline (refuses), or `at_most_ms`. */
void net_wait(struct waiting *waiting, size_t count, struct deadline deadline, int64_t at_most_ms);

/* A look at `came`: the other side has gone. */
bool net_is_gone(const struct waiting *waiting);

enum { WAIT_READ = 1, WAIT_WRITE = 4, WAIT_GONE = 0x2000 };

/* One readv or writev over up to two pieces: bytes moved, 0 for "not now", -1 for "the peer is lost". */
long net_move(int socket, bool sending, struct span *pieces, size_t count);

#endif
