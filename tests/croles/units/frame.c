/* Input: frames. Output: for each a line: what is wrong with it where the first is expected, or "fine". */
#include "frame.h"
#include "unit.h"

static void unit(size_t size, struct text *out)
{
    struct frame expected;
    memcpy(&expected, unit_input, sizeof expected);
    for (size_t at = 0; at + FRAME_BYTES <= size; at += FRAME_BYTES) {
        struct frame frame;
        memcpy(&frame, unit_input + at, sizeof frame);
        const char *fault = frame_fault(&frame, &expected);
        text_put(out, "%n\n", fault ? fault : "fine");
    }
}
