#include "binding.h"

#include "memory.h"
#include "refuse.h"
#include "sha256.h"

enum { CHECKED_BYTES = 480, VERSION = 1 };

static const char MAGIC[8] = {'O', 'R', 'C', 'H', 'B', 'N', 'D', '1'};

/* Volatile: the compiler must not take the zeros that stand here when it looks for what will be read. */
__attribute__((section(".orch.binding"), used, aligned(16))) static const volatile uint8_t bound[BINDING_BYTES] = {0};

static bool is_whole(const uint8_t *bytes, const uint8_t plan[32])
{
    uint8_t digest[32];
    sha256_of(bytes, CHECKED_BYTES, digest);
    return memcmp(bytes, MAGIC, sizeof MAGIC) == 0 && memory_u32(bytes + 8) == VERSION &&
           memcmp(bytes + 24, plan, 32) == 0 && memcmp(bytes + CHECKED_BYTES, digest, 32) == 0;
}

void binding_read(struct binding *binding, const uint8_t plan[32])
{
    uint8_t bytes[BINDING_BYTES];
    for (unsigned i = 0; i < BINDING_BYTES; i++)
        bytes[i] = bound[i];
    if (!is_whole(bytes, plan))
        refuse("binding");
    binding->mode = memory_u32(bytes + 12);
    binding->resume = memory_u32(bytes + 16) != 0;
    memcpy(binding->samples_digest, bytes + 56, 32);
    memcpy(binding->manifest_digest, bytes + 88, 32);
    memcpy(binding->run, bytes + 120, RUN_ID_BYTES);
    binding->epoch = memory_u64(bytes + 136);
    binding->target = memory_u64(bytes + 144);
    binding->publish_at = memory_u64(bytes + 152);
    binding->connect_ms = memory_u64(bytes + 168);
    binding->round_ms = memory_u64(bytes + 176);
    binding->run_ms = memory_u64(bytes + 184);
    binding->endpoint.family = memory_u32(bytes + 192);
    binding->endpoint.port = memory_u32(bytes + 196);
    memcpy(binding->endpoint.address, bytes + 200, sizeof binding->endpoint.address);
    if (binding->mode > MODE_EVALUATE)
        refuse("binding");
}
