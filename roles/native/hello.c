#include "hello.h"

#include "memory.h"
#include "peers.h"

void hello_begin(struct hello *hello, const struct binding *binding, uint64_t start)
{
    frame_begin(&hello->frame, binding->plan, binding->epoch);
    hello->frame.sender = ROLE_INDEX;
    hello->frame.kind = FRAME_HELLO;
    hello->frame.length = HELLO_PAYLOAD;
    memcpy(hello->run, binding->run, RUN_ID_BYTES);
    hello->mode = binding->mode;
    hello->mesh = binding->mesh;
    hello->target = binding->target;
    hello->start = start;
    memcpy(hello->secret, binding->secret, SECRET_BYTES);
}

bool hello_is_of_launch(const struct hello *hello, const struct hello *own)
{
    uint64_t difference = 0;
    for (size_t at = 0; at < SECRET_BYTES; at += sizeof difference)
        difference |= memory_u64(hello->secret + at) ^ memory_u64(own->secret + at);
    return difference == 0;
}

const char *hello_fault(const struct hello *hello, const struct hello *own, uint32_t sender)
{
    struct frame expected = own->frame;
    expected.sender = sender;
    /* Another epoch is most often another start, which has another run id too: the epoch says more, so it goes
     * first. */
    const char *fault = frame_fault(&hello->frame, &expected);
    if (fault)
        return fault;
    if (memcmp(hello->run, own->run, RUN_ID_BYTES) != 0)
        return "frame-identity";
    size_t rest = offsetof(struct hello, secret) - offsetof(struct hello, mode);
    return memcmp(&hello->mode, &own->mode, rest) != 0 ? "frame-round" : NULL;
}
