/* One deployment of the program, in 512 bytes of its own image that are filled in after linking.
 *
 *   0 magic "ORCHBND1"   8 version u32   12 mode u32   16 resume u32   20 zero u32   24 plan   56 sample digest
 *   88 manifest digest (zero: not bound)   120 run id   136 epoch   144 target version   152 publish at
 *   160 hold after   168 connect ms   176 round ms   184 run ms   192 family u32   196 port u32   200 address
 *   216 zero   480 SHA-256 of the 480 bytes before */
#ifndef BINDING_H
#define BINDING_H

#include <stdbool.h>
#include <stdint.h>

#include "net.h"

enum { BINDING_BYTES = 512, RUN_ID_BYTES = 16 };

enum mode { MODE_TRAIN = 0, MODE_EVALUATE = 1 };

struct binding {
    uint32_t mode;
    bool resume;
    uint8_t samples_digest[32];
    uint8_t manifest_digest[32];
    uint8_t run[RUN_ID_BYTES];
    uint64_t epoch;
    uint64_t target;
    uint64_t publish_at; /* 0: at the target alone */
    uint64_t connect_ms;
    uint64_t round_ms;
    uint64_t run_ms;
    struct endpoint endpoint; /* the root listens there, the others dial it */
};

/* Reads this program's binding. Refuses `binding` if it is not whole, or for another plan. */
void binding_read(struct binding *binding, const uint8_t plan[32]);

#endif
