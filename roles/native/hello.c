#include "hello.h"

#include "memory.h"

static struct frame frame_of(const struct hello *hello, uint32_t sender)
{
    return (struct frame){.plan = hello->plan,
                          .epoch = hello->binding->epoch,
                          .sender = sender,
                          .kind = FRAME_HELLO,
                          .length = HELLO_PAYLOAD};
}

void hello_write(uint8_t bytes[HELLO_BYTES], const struct hello *hello, uint32_t sender)
{
    struct frame frame = frame_of(hello, sender);
    uint8_t *payload = bytes + FRAME_BYTES;
    frame_write(bytes, &frame);
    memcpy(payload, hello->binding->run, RUN_ID_BYTES);
    memory_put_u32(payload + 16, hello->binding->mode);
    memory_put_u32(payload + 20, 0);
    memory_put_u64(payload + 24, hello->binding->target);
    memory_put_u64(payload + 32, hello->start);
}

const char *hello_fault(const uint8_t bytes[HELLO_BYTES], const struct hello *own, uint32_t sender)
{
    struct frame frame = frame_of(own, sender);
    uint8_t expected[HELLO_BYTES];
    const char *fault = frame_fault(bytes, &frame);
    hello_write(expected, own, sender);
    /* Another epoch is most often another start of the same lane, which has another run id too: the epoch says
     * more, so it goes first. */
    if (fault)
        return fault;
    if (memcmp(bytes + FRAME_BYTES, expected + FRAME_BYTES, RUN_ID_BYTES) != 0)
        return "frame-identity";
    return memcmp(bytes, expected, HELLO_BYTES) != 0 ? "frame-round" : NULL;
}
