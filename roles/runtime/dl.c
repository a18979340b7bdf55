#include "dl.h"

#include <stdint.h>

#include "memory.h"

enum { RESOLVE_NOW = 2 };

void *dl_open(const char *name)
{
    return dlopen(name, RESOLVE_NOW);
}

bool dl_take(void *library, const char *const *names, size_t count, void *table)
{
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(library, names[i]);
        if (!found)
            return false;
        memcpy((uint8_t *)table + i * sizeof found, &found, sizeof found);
    }
    return true;
}
