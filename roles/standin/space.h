/* A card's memory: apart from the host's, by addresses at which a host has nothing.
 *
 * Every allocation lies in a slot of its own, so that what leaves an allocation is in none. Fresh memory holds no
 * zeros, but words that are no number in either width. For every four bytes it is known which thread of the
 * running launch has written and read them: there is no order among threads, so that a word which one of them
 * writes and another touches is a race. */
#ifndef SPACE_H
#define SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPACE_SLOTS = 256, SPACE_SHIFT = 40, SPACE_ALIGNMENT = 256 };

/* Above what a kernel gives to programs on either instruction set, and below the bits that AArch64 ignores. */
#define SPACE_BASE ((uint64_t)0xd5 << 48)

/* What one thread of one launch leaves at a word that it touches; 0 is of no launch. */
struct trace {
    uint64_t writer;
    uint64_t reader;
};

struct slot {
    uint8_t *bytes;
    uint64_t size;
    struct trace *traces; /* one for every four bytes */
    size_t card;
};

extern struct slot space_slots[SPACE_SLOTS];

/* The address of fresh memory of a card; 0 if the host has none left. */
uint64_t space_allocate(size_t card, uint64_t size);

/* Where `size` bytes of a card's memory lie on the host; NULL unless all are in one allocation. */
static inline uint8_t *space_find(size_t card, uint64_t address, uint64_t size)
{
    uint64_t offset = address - SPACE_BASE;
    if (offset >> SPACE_SHIFT >= SPACE_SLOTS)
        return NULL;
    const struct slot *slot = &space_slots[offset >> SPACE_SHIFT];
    offset &= ((uint64_t)1 << SPACE_SHIFT) - 1;
    if (slot->card != card || size > slot->size || offset > slot->size - size)
        return NULL;
    return slot->bytes + offset;
}

/* Notes that `thread`, launch number << 32 | its own number + 1, touches a word of four bytes that was found.
 * False: another thread of the launch has written it, or read what this one writes. */
static inline bool space_trace(uint64_t address, uint64_t thread, bool is_written)
{
    uint64_t many = thread | UINT32_MAX;
    uint64_t offset = address - SPACE_BASE;
    struct trace *trace = &space_slots[offset >> SPACE_SHIFT].traces[(offset & (((uint64_t)1 << SPACE_SHIFT) - 1)) / 4];
    bool is_read = (trace->reader | UINT32_MAX) == many;
    if (trace->writer != thread && (trace->writer | UINT32_MAX) == many)
        return false;
    if (is_written) {
        if (is_read && trace->reader != thread)
            return false;
        trace->writer = thread;
    } else {
        trace->reader = is_read && trace->reader != thread ? many : thread;
    }
    return true;
}

/* Whole pages of the host that hold zeros, or NULL. */
void *space_pages(uint64_t size);

#endif
