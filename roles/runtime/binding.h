/* One deployment of the program, in 512 bytes of its own image that are filled in after linking. */
#ifndef BINDING_H
#define BINDING_H

#include <stdint.h>

#include "net.h"

enum { BINDING_BYTES = 512, RUN_ID_BYTES = 16, SECRET_BYTES = 16 };

enum mode { MODE_TRAIN = 0, MODE_EVALUATE = 1 };

/* Of a device role: bound at all; by its minor alone; with the host's copies overwritten before every forward pass; to
 * a stand-in, whose library and inventory lie in the work folder; only under a driver that the profile knows. */
enum device_flag {
    DEVICE_BOUND = 1, DEVICE_NODE_ONLY = 2, DEVICE_SHADOWED = 4, DEVICE_SIMULATED = 8, DEVICE_ESTABLISHED_DRIVER = 16
};

/* As it lies in the file: little-endian, without gaps. */
struct binding {
    char magic[8];
    uint32_t version;
    uint32_t mode;
    uint32_t resume;
    uint32_t zero;
    uint8_t plan[32];
    uint8_t samples_digest[32];
    uint8_t manifest_digest[32]; /* of the checkpoint to begin from; zero: any */
    uint8_t run[RUN_ID_BYTES];
    uint64_t epoch;
    uint64_t target;
    uint64_t publish_at; /* besides the target; 0: nowhere */
    uint64_t hold_after; /* reserved */
    uint64_t connect_ms;
    uint64_t round_ms;
    uint64_t run_ms;
    struct endpoint endpoint; /* where it listens; nowhere for a role without children */
    uint8_t secret[SECRET_BYTES]; /* of the launch: who does not know it is no role of it */
    struct endpoint parent; /* what it dials; nowhere for the root */
    uint32_t mesh; /* whether roles may connect to each other besides */
    uint32_t device; /* flags of enum device_flag; 0: a host role */
    uint32_t minor; /* of the one card that may be used */
    uint8_t uuid[16]; /* of that card */
    uint8_t reserved[196];
    uint8_t digest[32]; /* SHA-256 of all bytes before */
};

_Static_assert(sizeof(struct binding) == BINDING_BYTES, "bindings have no gaps");

/* Reads this program's binding. Refuses `binding` if it is not whole, or for another plan. */
void binding_read(struct binding *binding, const uint8_t plan[32]);

#endif
