#include "space.h"

#include "memory.h"
#include "system.h"

enum { READ_WRITE = 3, PRIVATE_ANONYMOUS = 0x22, NOT_RESERVED = 0x4000 };

struct slot space_slots[SPACE_SLOTS];

static size_t slots_used;

void *space_pages(uint64_t size)
{
    long mapped = system_call6(CALL_MAP, 0, (long)size, READ_WRITE, PRIVATE_ANONYMOUS | NOT_RESERVED, -1, 0);
    return mapped < 0 && mapped > -4096 ? NULL : (void *)(uintptr_t)mapped;
}

uint64_t space_allocate(size_t card, uint64_t size)
{
    if (slots_used == SPACE_SLOTS || size >> SPACE_SHIFT != 0)
        return 0;
    uint8_t *bytes = space_pages(size);
    struct trace *traces = space_pages((size + 3) / 4 * sizeof *traces);
    if (!bytes || !traces)
        return 0;
    for (uint64_t i = 0; i < size; i++)
        bytes[i] = i % 2 == 0 ? 0xf5 : 0xff; /* every 4 and every 8 bytes: exponent all ones, not infinity */
    space_slots[slots_used] = (struct slot){bytes, size, traces, card};
    return SPACE_BASE + ((uint64_t)slots_used++ << SPACE_SHIFT);
}
