/* Input: a byte. Output: a sum that overflows if the byte is not zero: the proof that a fault is noticed. */
#include "unit.h"

static void unit(size_t size, struct text *out)
{
    int sum = 0x7fffffff + (size > 0 ? unit_input[0] : 0);
    text_put(out, "%u", (uint64_t)(sum & 1));
}
