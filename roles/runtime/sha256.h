/* SHA-256 (FIPS 180-4), in pieces. */
#ifndef SHA256_H
#define SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32 };

struct sha256 {
    uint32_t word[8];
    uint64_t size;
    uint8_t block[64];
};

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t size);
void sha256_end(struct sha256 *hash, uint8_t digest[SHA256_BYTES]);
void sha256_of(const void *bytes, size_t size, uint8_t digest[SHA256_BYTES]);

#endif
