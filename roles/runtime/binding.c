#include "binding.h"

#include "memory.h"
#include "refuse.h"
#include "sha256.h"

enum { VERSION = 3 };

static const char BINDING_MAGIC[8] = {'O', 'R', 'C', 'H', 'B', 'N', 'D', '1'};

/* Volatile: the compiler must not take the zeros that stand here when it looks for what will be read. */
__attribute__((section(".orch.binding"), used, aligned(16))) static const volatile uint8_t bound[BINDING_BYTES] = {0};

void binding_read(struct binding *binding, const uint8_t plan[32])
{
    uint8_t digest[SHA256_BYTES];
    uint8_t *bytes = (uint8_t *)binding;
    for (unsigned i = 0; i < BINDING_BYTES; i++)
        bytes[i] = bound[i];
    sha256_of(binding, offsetof(struct binding, digest), digest);
    if (memcmp(binding->magic, BINDING_MAGIC, sizeof BINDING_MAGIC) != 0 || binding->version != VERSION ||
        memcmp(binding->plan, plan, sizeof binding->plan) != 0 || binding->mode > MODE_EVALUATE ||
        memcmp(binding->digest, digest, sizeof digest) != 0)
        refuse("binding");
}
