/* Linux without a C library: the calls that the runtime makes, by name. Results are the kernel's: negative
 * values are error numbers. What differs between instruction sets stands in machine_<name>.h. */
#ifndef SYSTEM_H
#define SYSTEM_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#include "machine_x86_64.h"
#elif defined(__aarch64__)
#include "machine_aarch64.h"
#else
#error "no machine_*.h for this instruction set"
#endif

enum { ERROR_NOENT = 2, ERROR_INTR = 4, ERROR_AGAIN = 11, ERROR_EXIST = 17, ERROR_ADDRINUSE = 98,
       ERROR_INPROGRESS = 115 };

enum { OPEN_READ = 0, OPEN_WRITE = 1, OPEN_CREATE = 0x40, OPEN_TRUNCATE = 0x200, OPEN_APPEND = 0x400,
       OPEN_NONBLOCK = 0x800, OPEN_CLOEXEC = 0x80000 };

enum { HERE = -100 }; /* AT_FDCWD */

struct span {
    void *bytes;
    size_t size;
};

struct waiting {
    int32_t file;
    int16_t wanted;
    int16_t came;
};

struct moment {
    int64_t seconds;
    int64_t nanoseconds;
};

/* Most calls have five arguments at most. */
static inline long system_call(long number, long a, long b, long c, long d, long e)
{
    return system_call6(number, a, b, c, d, e, 0);
}

static inline long system_pointer(const void *pointer)
{
    return (long)(uintptr_t)pointer;
}

static inline long system_read(int file, void *bytes, size_t size)
{
    return system_call(CALL_READ, file, system_pointer(bytes), (long)size, 0, 0);
}

static inline long system_write(int file, const void *bytes, size_t size)
{
    return system_call(CALL_WRITE, file, system_pointer(bytes), (long)size, 0, 0);
}

static inline long system_open(const char *name, int flags)
{
    return system_call(CALL_OPENAT, HERE, system_pointer(name), flags | OPEN_CLOEXEC, 0644, 0);
}

static inline void system_close(int file)
{
    (void)system_call(CALL_CLOSE, file, 0, 0, 0, 0);
}

__attribute__((noreturn)) static inline void system_exit(int code)
{
    for (;;)
        (void)system_call(CALL_EXIT, code, 0, 0, 0, 0);
}

#endif
