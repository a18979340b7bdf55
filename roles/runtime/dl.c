#include "dl.h"

#include <stdint.h>

#include "memory.h"
#include "refuse.h"
#include "text.h"

enum { RESOLVE_NOW = 2, LIBRARY_NAME_BYTES = 64 };

/* From the node's libdl; see roles/link. */
void *dlopen(const char *name, int how);
void *dlsym(void *library, const char *name);

void *dl_open(const char *name, bool is_simulated)
{
    char path[LIBRARY_NAME_BYTES];
    text_name(path, "%n%n", is_simulated ? "standin/" : "", name);
    void *library = dlopen(path, RESOLVE_NOW);
    if (library && (dlsym(library, "orch_stand_in") != NULL) != is_simulated)
        refuse("device-simulated");
    return library;
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
