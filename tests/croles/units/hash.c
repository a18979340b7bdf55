/* Input: pieces, each a length byte and as many bytes. Output: the digest of them all. */
#include "sha256.h"
#include "unit.h"

static void unit(size_t size, struct text *out)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    sha256_begin(&hash);
    for (size_t at = 0; at < size; at += 1u + unit_input[at])
        sha256_add(&hash, unit_input + at + 1, unit_input[at]);
    sha256_end(&hash, digest);
    text_put(out, "%h", digest);
}
