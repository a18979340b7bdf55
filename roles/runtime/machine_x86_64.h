/* What x86-64 Linux calls things: numbers, flags and layouts that differ between instruction sets. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdint.h>

enum {
    CALL_READ = 0, CALL_WRITE = 1, CALL_CLOSE = 3, CALL_FSTAT = 5, CALL_MAP = 9, CALL_UNMAP = 11,
    CALL_SIGACTION = 13, CALL_READ_AT = 17, CALL_WRITE_AT = 18, CALL_READV = 19, CALL_WRITEV = 20, CALL_YIELD = 24, CALL_SOCKET = 41,
    CALL_CONNECT = 42, CALL_BIND = 49, CALL_LISTEN = 50, CALL_GETSOCKNAME = 51, CALL_SETSOCKOPT = 54,
    CALL_GETSOCKOPT = 55, CALL_FSYNC = 74, CALL_CHDIR = 80, CALL_GETDENTS = 217, CALL_CLOCK = 228, CALL_EXIT = 231, CALL_OPENAT = 257, CALL_MKDIRAT = 258,
    CALL_UNLINKAT = 263, CALL_RENAMEAT = 264, CALL_PPOLL = 271, CALL_ACCEPT4 = 288,
};

enum { OPEN_DIRECTORY = 0x10000, OPEN_NOFOLLOW = 0x20000 };

enum { STAT_BYTES = 144, STAT_MODE_AT = 24, STAT_SIZE_AT = 48 };

static inline long system_call6(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* Round to nearest, every exception masked, denormals kept: the one setting under which bits agree. */
static inline int machine_float_is_plain(void)
{
    uint32_t mxcsr;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    return (mxcsr & ~0x3fu) == 0x1f80u; /* the lowest bits tell what was rounded, or denormal, before */
}

/* The kernel enters with argc and argv on the stack, 16-byte aligned; `call` makes the ABI's alignment. */
#define MACHINE_ENTRY                                                                                      \
    __attribute__((naked, noreturn, used)) void _start(void)                                               \
    {                                                                                                      \
        __asm__("xor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall start_main\n\thlt");           \
    }

#endif
