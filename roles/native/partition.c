#include "partition.h"

#include "peers.h"

static uint32_t role_at(uint32_t slot)
{
    return slot == SLOT_SELF ? ROLE_INDEX : FIRST_CHILD + slot - SLOT_CHILD;
}

#if BY_MODULO

uint32_t partition_slot(uint64_t coordinate)
{
    uint32_t role = (uint32_t)(coordinate % ROLE_COUNT);
    while (role > ROLE_INDEX) {
        if (role >= FIRST_CHILD && role < FIRST_CHILD + CHILD_COUNT)
            return role - FIRST_CHILD + SLOT_CHILD;
        role = (role - 1) / FAN_OUT;
    }
    return role == ROLE_INDEX ? SLOT_SELF : SLOT_NONE;
}

/* Coordinates of roles 0 to `roles` - 1. */
static uint64_t count_before(uint64_t size, uint64_t roles)
{
    uint64_t rest = size % ROLE_COUNT;
    return size / ROLE_COUNT * roles + (rest < roles ? rest : roles);
}

uint64_t partition_count(uint64_t size, uint32_t slot)
{
    uint64_t count = 0;
    uint64_t first = role_at(slot);
    uint64_t end = first + 1;
    /* Each level of a subtree is a run of roles. */
    do {
        count += count_before(size, end) - count_before(size, first);
        first = first * FAN_OUT + 1;
        end = end * FAN_OUT + 1 < ROLE_COUNT ? end * FAN_OUT + 1 : ROLE_COUNT;
    } while (slot != SLOT_SELF && first < ROLE_COUNT);
    return count;
}

static struct region owned(uint64_t size, uint32_t slot)
{
    uint64_t role = role_at(slot);
    uint64_t count = size > role ? (size - role + ROLE_COUNT - 1) / ROLE_COUNT : 0;
    return (struct region){role, ROLE_COUNT, count};
}

#else

uint32_t partition_slot(uint64_t coordinate)
{
    for (uint32_t i = 0; i < sizeof SEGMENTS / sizeof *SEGMENTS; i++)
        if (coordinate < SEGMENTS[i].stop)
            return SEGMENTS[i].slot;
    return SLOT_NONE;
}

uint64_t partition_count(uint64_t size, uint32_t slot)
{
    uint64_t count = 0;
    uint64_t start = 0;
    for (uint32_t i = 0; i < sizeof SEGMENTS / sizeof *SEGMENTS && start < size; i++) {
        uint64_t stop = SEGMENTS[i].stop < size ? SEGMENTS[i].stop : size;
        if (SEGMENTS[i].slot == slot)
            count += stop - start;
        start = stop;
    }
    return count;
}

static struct region owned(uint64_t size, uint32_t slot)
{
    uint64_t start = RANGES[slot].start < size ? RANGES[slot].start : size;
    uint64_t stop = RANGES[slot].stop < size ? RANGES[slot].stop : size;
    return (struct region){start, 1, stop > start ? stop - start : 0};
}

#endif

/* Of what all hold, each role's share is a run: the shares are as alike as they can be. */
static struct region share(uint64_t size, uint32_t slot)
{
    uint64_t role = role_at(slot);
    uint64_t first = (size * role + ROLE_COUNT - 1) / ROLE_COUNT;
    uint64_t end = (size * (role + 1) + ROLE_COUNT - 1) / ROLE_COUNT;
    return (struct region){first, 1, end - first};
}

struct region partition_published(uint32_t field, uint32_t slot)
{
    uint64_t size = FIELDS[field].size;
    struct region region = FIELDS[field].holding == PARTITIONED ? owned(size, slot) : share(size, slot);
    if (region.count <= 1)
        region.stride = 1;
    return region;
}
