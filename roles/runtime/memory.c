#include "memory.h"

/* Without this the compiler would turn each loop below into a call of the very function it stands in. */
#define PLAIN __attribute__((no_builtin))

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "wire and file words are copied as they lie");

PLAIN void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    for (; size >= 8; size -= 8, out += 8, in += 8)
        __builtin_memcpy_inline(out, in, 8);
    while (size-- > 0)
        *out++ = *in++;
    return to;
}

PLAIN void *memmove(void *to, const void *from, size_t size)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    if (out <= in) {
        while (size-- > 0)
            *out++ = *in++;
    } else {
        while (size-- > 0)
            out[size] = in[size];
    }
    return to;
}

PLAIN void *memset(void *to, int value, size_t size)
{
    uint8_t *out = to;
    while (size-- > 0)
        *out++ = (uint8_t)value;
    return to;
}

PLAIN int memcmp(const void *left, const void *right, size_t size)
{
    const uint8_t *a = left;
    const uint8_t *b = right;
    for (; size > 0; size--, a++, b++)
        if (*a != *b)
            return *a < *b ? -1 : 1;
    return 0;
}

bool memory_is_zero(const void *bytes, size_t size)
{
    const uint8_t *in = bytes;
    uint8_t any = 0;
    while (size-- > 0)
        any |= *in++;
    return any == 0;
}

uint32_t memory_u32(const uint8_t *bytes)
{
    uint32_t value;
    __builtin_memcpy_inline(&value, bytes, sizeof value);
    return value;
}

uint64_t memory_u64(const uint8_t *bytes)
{
    uint64_t value;
    __builtin_memcpy_inline(&value, bytes, sizeof value);
    return value;
}

void memory_put_u32(uint8_t *bytes, uint32_t value)
{
    __builtin_memcpy_inline(bytes, &value, sizeof value);
}

void memory_put_u64(uint8_t *bytes, uint64_t value)
{
    __builtin_memcpy_inline(bytes, &value, sizeof value);
}
