/* Input: bytes. Output: the same bytes moved about in overlapping ways, and comparisons of their halves. */
#include "unit.h"

static void unit(size_t size, struct text *out)
{
    static uint8_t room[3 * 64 + 3];
    size_t half = size / 2;
    memset(room, 0x5a, sizeof room);
    memcpy(room + 1, unit_input, size);
    memmove(room + 4, room + 1, size);
    memmove(room + 2, room + 4, size);
    bool same = memcmp(room + 2, unit_input, size) == 0;
    int order = memcmp(unit_input, unit_input + half, half);
    text_put(out, "%u %u %u %u", (uint64_t)same, (uint64_t)(order < 0), (uint64_t)(order > 0),
             (uint64_t)memory_is_zero(unit_input, size));
}
