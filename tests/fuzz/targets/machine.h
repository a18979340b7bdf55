/* The machine under a fuzzed role: files and sockets are what the input says, and a refusal comes back here.
 *
 * Replaces files.c, net.c, clock.c and refuse.c of the runtime; all other sources are the roles' own. */
#ifndef MACHINE_FAKE_H
#define MACHINE_FAKE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { MOST_FILES = 16, MOST_SOCKETS = 8, MOST_BYTES = 1 << 17 };

struct fake_file {
    const char *name;
    uint8_t *bytes;
    size_t size;
};

/* What stands on a socket, and in how small pieces it comes. */
struct fake_socket {
    const uint8_t *bytes;
    size_t size;
    size_t at;
    size_t piece;
};

struct machine {
    struct fake_file files[MOST_FILES];
    size_t file_count;
    struct fake_socket sockets[MOST_SOCKETS];
    size_t socket_count;
    size_t accepted;
    const char *label; /* of the refusal, if there was one */
    unsigned patience; /* waits that are left before a deadline */
    jmp_buf refused;
};

extern struct machine machine;

/* True once `body`, a statement, was refused; `machine.label` says how. */
#define WAS_REFUSED(body) (setjmp(machine.refused) != 0 || ((body), false))

/* An end that no input may lead to. */
#define DEMAND(condition)                                                                                      \
    do                                                                                                         \
        if (!(condition))                                                                                      \
            abort();                                                                                           \
    while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
