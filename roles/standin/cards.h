/* The cards that the stand-in says there are: one line of text a card, in the one form that is written beside it
 * (orchestrator/build/standin.py is the other side). */
#ifndef CARDS_H
#define CARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

enum { CARDS = 32, UUID_BYTES = 16, UUID_TEXT = 41, PRODUCT_BYTES = 64 };

/* What a card does wrong, and from or at which launch (the first is 1). */
enum fault { FAULT_NONE, FAULT_LOST, FAULT_MEMORY, FAULT_BUSY, FAULT_COMPUTE };

struct card {
    uint64_t minor;
    uint8_t uuid[UUID_BYTES];
    char uuid_text[UUID_TEXT]; /* GPU-00000000-0000-0000-0000-000000000000 */
    uint64_t domain;
    uint64_t bus;
    uint64_t device;
    uint64_t function;
    uint64_t major;
    uint64_t lesser; /* of the compute capability major.lesser */
    uint64_t memory_mib;
    uint64_t reserved_mib;
    uint64_t used_mib;
    uint64_t utilization; /* percent */
    uint64_t process;     /* 0: none */
    uint64_t process_mib;
    uint64_t mig;
    uint64_t reset;
    char driver[NAME_BYTES];
    enum fault fault;
    uint64_t fault_at;
    char product[PRODUCT_BYTES];
};

struct cards {
    struct card card[CARDS];
    size_t count;
};

/* False if there is no such file, if it is in another form, or has more than `CARDS` lines. No line is no error. */
bool cards_read(const char *file, struct cards *cards);

/* The first card at a PCI address such as 0000:41:00.0, whatever its digits' case and leading zeros; -1: none. */
int cards_at(const struct cards *cards, const char *address);

/* A number in so many hexadecimal digits, in upper case. */
void cards_put_hex(struct text *text, uint64_t number, unsigned digits);

/* A card's PCI address with so many digits of the domain: 00000000:41:00.0. */
void cards_put_address(struct text *text, const struct card *card, unsigned digits);

/* What came with a driver: CUDA as 1000 x major + 10 x minor, and the newest PTX as 10 x major + minor. */
struct release {
    uint64_t branch;
    uint64_t cuda;
    uint64_t language;
};

struct release cards_release(const struct card *card);

#endif
