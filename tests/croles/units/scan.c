/* Input: texts, each ended by a zero byte. Output: for each a line, of what was read and written again, or "no". */
#include "unit.h"

#define FORM "{\"n\":%u,\"name\":\"%n\",\"long\":\"%h\",\"short\":\"%r\"}"

static void unit(size_t size, struct text *out)
{
    const char *end = (const char *)unit_input + size;
    for (const char *next = (const char *)unit_input; next < end;) {
        struct scan scan = {next, false};
        uint64_t number = 0;
        char name[NAME_BYTES];
        uint8_t digest[32];
        uint8_t run[16];
        scan_form(&scan, FORM, &number, name, digest, run);
        while (*next++ != 0) {
        }
        if (scan.failed || scan.at != next - 1)
            text_put(out, "no\n");
        else
            text_put(out, FORM "\n", number, name, digest, run);
    }
}
