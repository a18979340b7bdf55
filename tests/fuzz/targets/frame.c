/* Input: what differs in a hello from the one that is expected. */
#include <string.h>

#include "hello.h"
#include "machine.h"
#include "plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct binding binding = {.epoch = 3, .target = 5, .secret = "sixteen bytes of"};
    struct hello own;
    struct hello other;
    memset(&own, 0, sizeof own);
    hello_begin(&own, &binding, 1);
    memcpy(&other, &own, sizeof other);
    for (size_t i = 0; i < size && i < sizeof other; i++)
        ((uint8_t *)&other)[i] ^= data[i];
    bool same = memcmp(&own, &other, sizeof own) == 0;
    bool same_frame = memcmp(&own.frame, &other.frame, sizeof own.frame) == 0;
    DEMAND((frame_fault(&other.frame, &own.frame) == NULL) == same_frame);
    const char *fault = hello_fault(&other, &own, own.frame.sender);
    if (hello_is_of_launch(&other, &own))
        DEMAND((fault == NULL) == same);
    else
        DEMAND(!same);
    for (size_t i = 0; i <= sizeof own.frame; i++)
        DEMAND(frame_may_begin(&own, i));
    DEMAND(frame_may_begin(&other, size < sizeof other ? size : sizeof other) ==
           (memcmp(&own, &other, size < 8 ? size : 8) == 0));
    return 0;
}
