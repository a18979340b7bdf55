#include "files.h"

#include "memory.h"
#include "refuse.h"
#include "system.h"

enum { KIND_MASK = 0170000, KIND_REGULAR = 0100000 };

/* A regular file, or -1. */
static int open_regular(const char *name, int how, uint64_t *size)
{
    uint8_t stat[STAT_BYTES] __attribute__((aligned(8)));
    /* Without O_NONBLOCK the opening of a pipe would wait for who is at its other end. */
    long file = system_open(name, how | OPEN_NOFOLLOW | OPEN_NONBLOCK);
    if (file < 0)
        return -1;
    if (system_call(CALL_FSTAT, file, system_pointer(stat), 0, 0, 0) < 0 ||
        (memory_u32(stat + STAT_MODE_AT) & KIND_MASK) != KIND_REGULAR) {
        system_close((int)file);
        return -1;
    }
    *size = memory_u64(stat + STAT_SIZE_AT);
    return (int)file;
}

int files_open(const char *name, uint64_t *size)
{
    return open_regular(name, OPEN_READ, size);
}

bool files_read(int file, void *bytes, size_t size)
{
    uint8_t *at = bytes;
    while (size > 0) {
        long got = system_read(file, at, size);
        if (got == -ERROR_INTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

bool files_read_at(int file, void *bytes, size_t size, uint64_t at)
{
    uint8_t *into = bytes;
    while (size > 0) {
        long got = system_call(CALL_READ_AT, file, system_pointer(into), (long)size, (long)at, 0);
        if (got == -ERROR_INTR)
            continue;
        if (got <= 0)
            return false;
        into += got;
        at += (uint64_t)got;
        size -= (size_t)got;
    }
    return true;
}

static long demand(long result)
{
    if (result < 0)
        refuse("write-failed");
    return result;
}

static int open_for_writing(const char *name, int how)
{
    uint64_t size;
    int file = open_regular(name, OPEN_WRITE | OPEN_CREATE | how, &size);
    (void)demand(file);
    return file;
}

int files_create(const char *name)
{
    return open_for_writing(name, OPEN_TRUNCATE);
}

int files_append_to(const char *name)
{
    return open_for_writing(name, OPEN_APPEND);
}

void files_write(int file, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    while (size > 0) {
        long put = system_write(file, at, size);
        if (put == -ERROR_INTR)
            continue;
        if (put == 0)
            refuse("write-failed");
        at += demand(put);
        size -= (size_t)put;
    }
}

void files_make_folder(const char *name)
{
    long result = system_call(CALL_MKDIRAT, HERE, system_pointer(name), 0755, 0, 0);
    if (result != -ERROR_EXIST)
        (void)demand(result);
}

static void sync(int file)
{
    (void)demand(system_call(CALL_FSYNC, file, 0, 0, 0, 0));
    system_close(file);
}

void files_publish(int file, const char *temporary, const char *name, const char *folder)
{
    sync(file);
    (void)demand(system_call(CALL_RENAMEAT, HERE, system_pointer(temporary), HERE, system_pointer(name), 0));
    sync((int)demand(system_open(folder, OPEN_READ | OPEN_DIRECTORY)));
}

void files_remove(const char *name)
{
    (void)system_call(CALL_UNLINKAT, HERE, system_pointer(name), 0, 0, 0);
}
