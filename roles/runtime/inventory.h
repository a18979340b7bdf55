/* Which cards the machine has: their Linux minor numbers, and where on the bus each is.
 *
 * The kernel driver says it in its files; where a container does not show these, the management library does. No card
 * is asked for more than that, and none is used. */
#ifndef INVENTORY_H
#define INVENTORY_H

#include <stdbool.h>
#include <stdint.h>

enum { MOST_CARDS = 32, BUS_BYTES = 32, RELEASE_BYTES = 80 };

struct inventory {
    const char *source;          /* who said it: `proc` or `nvml` */
    char bus[BUS_BYTES];         /* where the one card is, as the driver's library takes it */
    char release[RELEASE_BYTES]; /* of the driver; empty if it is not told */
};

/* The card with this minor, of this machine or of the stand-in in the work folder. Refuses `device-inventory` if there
 * are more than MOST_CARDS or one cannot be read, `device-minor` if none has the minor, `device-minor-twice` if more
 * than one has. */
void inventory_find(struct inventory *inventory, uint32_t minor, bool is_simulated);

#endif
