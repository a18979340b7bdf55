/* Bytes from one process to another and nothing else: stream BYTES ROUNDS
 *
 * One TCP connection on this machine, blocking; BYTES from a vector into a vector of at most 64 MiB, in pieces of at
 * most 256 KiB, ROUNDS times without a pause. Prints nanoseconds until the last byte is in, after at most
 * eight rounds that are not counted. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { VECTOR = 1 << 26, PIECE = 1 << 18 };

static char vector[VECTOR];

static void demand(int holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    exit(1);
}

static void move_all(int socket, int sending, size_t size)
{
    size_t at = 0;
    while (size > 0) {
        size_t most = size < PIECE ? size : PIECE;
        if (most > VECTOR - at)
            most = VECTOR - at;
        ssize_t moved = sending ? write(socket, vector + at, most) : read(socket, vector + at, most);
        demand(moved > 0, sending ? "write" : "read");
        size -= (size_t)moved;
        at = (at + (size_t)moved) % VECTOR;
    }
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int main(int count, char **arguments)
{
    demand(count == 3, "usage: stream BYTES ROUNDS");
    size_t size = strtoul(arguments[1], NULL, 10);
    size_t rounds = strtoul(arguments[2], NULL, 10);
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    size_t uncounted = rounds < 8 ? rounds : 8;
    socklen_t length = sizeof name;
    int on = 1;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    demand(bind(listener, (struct sockaddr *)&name, sizeof name) == 0, "bind");
    demand(listen(listener, 1) == 0, "listen");
    demand(getsockname(listener, (struct sockaddr *)&name, &length) == 0, "getsockname");
    memset(vector, 0, size < VECTOR ? size : VECTOR);
    pid_t child = fork();
    demand(child >= 0, "fork");
    if (child == 0) {
        int peer = socket(AF_INET, SOCK_STREAM, 0);
        demand(connect(peer, (struct sockaddr *)&name, sizeof name) == 0, "connect");
        demand(setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "setsockopt");
        memset(vector, 1, size < VECTOR ? size : VECTOR); /* pages of its own */
        for (size_t round = 0; round < uncounted + rounds; round++)
            move_all(peer, 1, size);
        return 0;
    }
    int peer = accept(listener, NULL, NULL);
    memset(vector, 2, size < VECTOR ? size : VECTOR);
    for (size_t round = 0; round < uncounted; round++)
        move_all(peer, 0, size);
    int64_t begun = now();
    for (size_t round = 0; round < rounds; round++)
        move_all(peer, 0, size);
    printf("%lld\n", (long long)(now() - begun));
    demand(waitpid(child, NULL, 0) == child, "waitpid");
    return 0;
}
