/* The four functions that a freestanding compiler may call by itself, and comparison. */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *left, const void *right, size_t size);

bool memory_is_zero(const void *bytes, size_t size);

/* Little-endian words at any alignment. */
uint32_t memory_u32(const uint8_t *bytes);
uint64_t memory_u64(const uint8_t *bytes);
void memory_put_u32(uint8_t *bytes, uint32_t value);
void memory_put_u64(uint8_t *bytes, uint64_t value);

#endif
