/* The one card that this role may use: found by its minor, known by its UUID, charged by the byte.
 *
 * Everything that is asked of a driver is asked here, of the bound card alone. What it cannot do is refused by name:
 * there is no other card and no other way. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdint.h>

#include "binding.h"
#include "text.h"

enum { DEVICE_BLOCK_THREADS = 128 };

/* What the program was made for. */
struct device_profile {
    const char *product;            /* exactly as the driver says it */
    int capability[2];              /* major, minor */
    const char *const *established; /* releases of the driver, then NULL; `550.54` is `550.54.14` too */
    const char *module;             /* PTX */
    uint64_t lease;                 /* bytes of video memory, each allocation rounded up to 256 */
};

/* Finds the bound card, checks it, takes its context and loads the module. Refuses, in this order: `binding` if no card
 * is bound; see inventory.h; `device-library`, `device-simulated`, `device-absent`; `device-minor`; `device-uuid`;
 * `nvidia-plan-host`; `device-driver`; `device-busy`; `device-kernel`. */
void device_open(const struct binding *binding, const struct device_profile *profile);

/* An address in video memory; of no bytes 0. Refuses `device-lease` if it is more than the lease has left,
 * `device-memory` if the card has not got it. */
uint64_t device_allocate(uint64_t bytes);

/* Copies; of no bytes nothing. Refuses `device-lost` on any error. */
void device_write(uint64_t to, const void *from, uint64_t bytes);
void device_read(void *into, uint64_t from, uint64_t bytes);

/* A kernel of the module. Refuses `device-kernel` if there is none of this name. */
void *device_kernel(const char *name);

/* Starts so many threads of a kernel; of none nothing. Refuses `device-lost` on any error. */
void device_launch(void *kernel, uint64_t threads, void **parameters);

/* What the card was and did, as one JSON object. `product` is the profile's, in JSON. */
void device_say(struct text *text, const char *product);

#endif
