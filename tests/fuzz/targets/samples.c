/* Input: a sample file, which is the bound one if it has the right size. */
#include <string.h>

#include "learner.h"
#include "machine.h"
#include "sha256.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t held[MOST_BYTES];
    uint8_t digest[SHA256_BYTES];
    if (size > sizeof held)
        return 0;
    memcpy(held, data, size);
    sha256_of(held, size, digest);
    machine = (struct machine){.files = {{"samples", held, size}}, .file_count = 1};
    if (WAS_REFUSED(learner_load_samples(digest)))
        DEMAND(strcmp(machine.label, "data-chunk") == 0 || strcmp(machine.label, "non-finite") == 0);
    else
        DEMAND(size == ROLE_SAMPLES * SAMPLE_WORDS * sizeof(double));
    return 0;
}
