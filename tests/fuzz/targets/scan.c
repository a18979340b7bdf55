/* Input: a text. What is read of it and written again is the same text, or nothing is read. */
#include <string.h>

#include "machine.h"
#include "text.h"

#define FORM "{\"list\":[%u,%u],\"long\":\"%h\",\"name\":\"%n\",\"short\":\"%r\"}"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char again[4096];
    char *given = malloc(size + 1); /* of its very size, so that a look past its end is noticed */
    struct text text = {again, sizeof again, 0};
    struct scan scan = {given, false};
    uint64_t first = 0;
    uint64_t second = 0;
    char name[NAME_BYTES];
    uint8_t digest[32];
    uint8_t run[16];
    DEMAND(given);
    memcpy(given, data, size);
    given[size] = 0;
    scan_form(&scan, FORM, &first, &second, digest, name, run);
    if (!scan.failed) {
        bool ends = scan.at == given + strlen(given);
        DEMAND(!WAS_REFUSED(text_put(&text, FORM, first, second, digest, name, run)));
        DEMAND(strncmp(again, given, text.used) == 0);
        DEMAND(!ends || text.used == strlen(given));
        DEMAND(first >> 53 == 0 && second >> 53 == 0);
    }
    free(given);
    return 0;
}
