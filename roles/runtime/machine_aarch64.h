/* What AArch64 Linux calls things: numbers, flags and layouts that differ between instruction sets. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdint.h>

enum {
    CALL_MKDIRAT = 34, CALL_UNLINKAT = 35, CALL_RENAMEAT = 38, CALL_CHDIR = 49, CALL_OPENAT = 56,
    CALL_CLOSE = 57, CALL_READ = 63, CALL_WRITE = 64, CALL_READV = 65, CALL_WRITEV = 66,
    CALL_READ_AT = 67, CALL_WRITE_AT = 68, CALL_GETDENTS = 61, CALL_PPOLL = 73, CALL_FSTAT = 80, CALL_FSYNC = 82, CALL_YIELD = 124, CALL_EXIT = 94, CALL_CLOCK = 113, CALL_SIGACTION = 134,
    CALL_SOCKET = 198, CALL_BIND = 200, CALL_LISTEN = 201, CALL_CONNECT = 203, CALL_SETSOCKOPT = 208,
    CALL_GETSOCKNAME = 204, CALL_GETSOCKOPT = 209, CALL_UNMAP = 215, CALL_MAP = 222, CALL_ACCEPT4 = 242,
};

enum { OPEN_DIRECTORY = 0x4000, OPEN_NOFOLLOW = 0x8000 };

enum { STAT_BYTES = 128, STAT_MODE_AT = 16, STAT_SIZE_AT = 48 };

static inline long system_call6(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}

/* Round to nearest, no traps, denormals kept: the one setting under which bits agree. */
static inline int machine_float_is_plain(void)
{
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr == 0;
}

/* The kernel enters with argc and argv on the stack, which it has aligned. */
#define MACHINE_ENTRY                                                                                      \
    __attribute__((naked, noreturn, used)) void _start(void)                                               \
    {                                                                                                      \
        __asm__("mov x29, #0\n\tmov x30, #0\n\tmov x0, sp\n\tbl start_main\n\tbrk #1");                    \
    }

#endif
