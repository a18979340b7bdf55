/* Runs a target without a fuzzing library: every file that is named, then so many changed copies of each.
 *
 * argv: how many copies, then the files. The changes are the same in every run. With `labels` for the number, what
 * becomes of each file is said in a line. */
#include <stdio.h>
#include <string.h>

#include "machine.h"

static uint64_t chance = 0x9e3779b97f4a7c15u;

static uint64_t next(uint64_t below)
{
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return chance % below;
}

static uint8_t given[MOST_BYTES];
static uint8_t changed[2 * MOST_BYTES];

static size_t change(size_t size)
{
    for (uint64_t times = 1 + next(4); times > 0 && size > 0; times--) {
        size_t at = next(size);
        size_t length = 1 + next(16);
        if (length > size - at)
            length = size - at;
        switch (next(5)) {
        case 0:
            changed[at] ^= (uint8_t)(1u << next(8));
            break;
        case 1:
            changed[at] = (uint8_t)next(256);
            break;
        case 2: /* cut out */
            memmove(changed + at, changed + at + length, size - at - length);
            size -= length;
            break;
        case 3: /* twice */
            memmove(changed + at + length, changed + at, size - at);
            size += length;
            break;
        default: /* another digit */
            while (at < size - 1 && (changed[at] < '0' || changed[at] > '9'))
                at++;
            changed[at] = (uint8_t)('0' + next(10));
        }
    }
    return size;
}

static void run(size_t size)
{
    uint8_t *exact = malloc(size + 1); /* so that a look past its end is noticed */
    DEMAND(exact);
    memcpy(exact, changed, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

int main(int count, char **words)
{
    for (int i = 2; i < count; i++) {
        FILE *file = fopen(words[i], "rb");
        DEMAND(file);
        size_t size = fread(given, 1, sizeof given, file);
        fclose(file);
        memcpy(changed, given, size);
        run(size);
        if (strcmp(words[1], "labels") == 0)
            puts(machine.label ? machine.label : "fine");
        for (long copies = atol(words[1]); copies > 0; copies--) {
            memcpy(changed, given, size);
            run(change(size));
        }
    }
    fprintf(stderr, "%d files\n", count - 2);
    return 0;
}
