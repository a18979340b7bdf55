/* What is asked of each card, counted in a file beside the cards: one line of fixed width a card, in their order,
 * written anew at every call, so that it says the truth of a process that was killed. */
#ifndef CALLS_H
#define CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cards.h"

struct calls {
    uint64_t calls;
    uint64_t launches;
    uint64_t allocations;
    uint64_t bytes_allocated;
    uint64_t to_device;   /* bytes */
    uint64_t from_device; /* bytes */
    uint64_t error;       /* that the card is lost with */
    uint64_t races;
};

/* Makes the file, with zeros for every card. */
bool calls_begin(const char *file, const struct cards *cards);

/* Writes one card's line. */
bool calls_write(size_t card, uint64_t minor, const struct calls *calls);

#endif
