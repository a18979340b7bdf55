/* The least that a round of a pair can be: pingpong BYTES ROUNDS LOOKS
 *
 * Two processes on one machine; per round, one sends BYTES over TCP and the other answers with as many. LOOKS
 * is how often a socket is looked at before its process sleeps in poll(); 0 is plain blocking reads. Prints
 * nanoseconds from the first byte to the last. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long looks;

static void demand(int holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    exit(1);
}

static void read_all(int socket, char *bytes, size_t size)
{
    long left = looks;
    while (size > 0) {
        ssize_t got = read(socket, bytes, size);
        if (got > 0) {
            bytes += got;
            size -= (size_t)got;
            left = looks;
            continue;
        }
        demand(got < 0 && errno == EAGAIN, "read");
        if (left-- > 0)
            continue;
        struct pollfd waiting = {.fd = socket, .events = POLLIN};
        demand(poll(&waiting, 1, -1) == 1, "poll");
    }
}

static void write_all(int socket, const char *bytes, size_t size)
{
    demand(write(socket, bytes, size) == (ssize_t)size, "write"); /* one small message: there is room */
}

static void configure(int socket)
{
    int on = 1;
    demand(setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "setsockopt");
    if (looks > 0)
        demand(fcntl(socket, F_SETFL, O_NONBLOCK) == 0, "fcntl");
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int main(int count, char **arguments)
{
    static char bytes[1 << 16];
    demand(count == 4, "usage: pingpong BYTES ROUNDS LOOKS");
    size_t size = strtoul(arguments[1], NULL, 10);
    long rounds = strtol(arguments[2], NULL, 10);
    looks = strtol(arguments[3], NULL, 10);
    demand(size > 0 && size <= sizeof bytes, "BYTES");
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof name;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    demand(bind(listener, (struct sockaddr *)&name, sizeof name) == 0, "bind");
    demand(listen(listener, 1) == 0, "listen");
    demand(getsockname(listener, (struct sockaddr *)&name, &length) == 0, "getsockname");
    pid_t child = fork();
    demand(child >= 0, "fork");
    if (child == 0) {
        int peer = accept(listener, NULL, NULL);
        configure(peer);
        for (long round = 0; round < rounds; round++) {
            read_all(peer, bytes, size);
            write_all(peer, bytes, size);
        }
        return 0;
    }
    int peer = socket(AF_INET, SOCK_STREAM, 0);
    demand(connect(peer, (struct sockaddr *)&name, sizeof name) == 0, "connect");
    configure(peer);
    int64_t begun = now();
    for (long round = 0; round < rounds; round++) {
        write_all(peer, bytes, size);
        read_all(peer, bytes, size);
    }
    printf("%lld\n", (long long)(now() - begun));
    demand(waitpid(child, NULL, 0) == child, "waitpid");
    return 0;
}
