#include "sha256.h"

#include "memory.h"

static const uint32_t ROUND[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t value, unsigned by)
{
    return value >> by | value << (32 - by);
}

static void mix(struct sha256 *hash, const uint8_t *block)
{
    uint32_t w[64];
    for (unsigned i = 0; i < 16; i++)
        w[i] = __builtin_bswap32(memory_u32(block + 4 * i));
    for (unsigned i = 16; i < 64; i++) {
        uint32_t near = w[i - 15];
        uint32_t far = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (turn(near, 7) ^ turn(near, 18) ^ near >> 3) +
               (turn(far, 17) ^ turn(far, 19) ^ far >> 10);
    }
    const uint32_t *s = hash->word;
    uint32_t a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
    for (unsigned i = 0; i < 64; i++) {
        uint32_t first = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + ROUND[i] + w[i];
        uint32_t second = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + first;
        d = c;
        c = b;
        b = a;
        a = first + second;
    }
    const uint32_t mixed[8] = {a, b, c, d, e, f, g, h};
    for (unsigned i = 0; i < 8; i++)
        hash->word[i] += mixed[i];
}

void sha256_begin(struct sha256 *hash)
{
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->word, first, sizeof first);
    hash->size = 0;
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t size)
{
    const uint8_t *in = bytes;
    while (size > 0) {
        size_t at = hash->size % 64;
        size_t piece = size < 64 - at ? size : 64 - at;
        if (piece == 64) {
            mix(hash, in);
        } else {
            memcpy(hash->block + at, in, piece);
            if (at + piece == 64)
                mix(hash, hash->block);
        }
        hash->size += piece;
        in += piece;
        size -= piece;
    }
}

void sha256_end(struct sha256 *hash, uint8_t digest[SHA256_BYTES])
{
    static const uint8_t padding[64] = {0x80};
    uint8_t bits[8];
    memory_put_u64(bits, __builtin_bswap64(hash->size * 8));
    sha256_add(hash, padding, 1 + (119 - hash->size % 64) % 64);
    sha256_add(hash, bits, sizeof bits);
    for (unsigned i = 0; i < 8; i++)
        memory_put_u32(digest + 4 * i, __builtin_bswap32(hash->word[i]));
}

void sha256_of(const void *bytes, size_t size, uint8_t digest[SHA256_BYTES])
{
    struct sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, bytes, size);
    sha256_end(&hash, digest);
}
