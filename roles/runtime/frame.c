#include "frame.h"

#include "memory.h"

enum { PLAN_AT = 8, EPOCH_AT = 40, ROUND_AT = 48, SENDER_AT = 56, KIND_AT = 60, LENGTH_AT = 64, ZERO_AT = 72 };

static const char MAGIC[8] = {'O', 'R', 'C', 'H', 'F', 'R', 'M', '1'};

void frame_write(uint8_t bytes[FRAME_BYTES], const struct frame *frame)
{
    memset(bytes, 0, FRAME_BYTES);
    memcpy(bytes, MAGIC, sizeof MAGIC);
    memcpy(bytes + PLAN_AT, frame->plan, 32);
    memory_put_u64(bytes + EPOCH_AT, frame->epoch);
    memory_put_u64(bytes + ROUND_AT, frame->round);
    memory_put_u32(bytes + SENDER_AT, frame->sender);
    memory_put_u32(bytes + KIND_AT, frame->kind);
    memory_put_u64(bytes + LENGTH_AT, frame->length);
}

const char *frame_fault(const uint8_t bytes[FRAME_BYTES], const struct frame *expected)
{
    if (!frame_may_begin(bytes, sizeof MAGIC) || memcmp(bytes + PLAN_AT, expected->plan, 32) != 0 ||
        frame_sender(bytes) != expected->sender || memory_u32(bytes + KIND_AT) != expected->kind ||
        !memory_is_zero(bytes + ZERO_AT, FRAME_BYTES - ZERO_AT))
        return "frame-identity";
    if (memory_u64(bytes + EPOCH_AT) != expected->epoch)
        return "frame-epoch";
    if (memory_u64(bytes + ROUND_AT) != expected->round)
        return "frame-round";
    return frame_length(bytes) != expected->length ? "frame-bound" : NULL;
}

bool frame_may_begin(const uint8_t *bytes, size_t size)
{
    return memcmp(bytes, MAGIC, size < sizeof MAGIC ? size : sizeof MAGIC) == 0;
}

uint32_t frame_sender(const uint8_t bytes[FRAME_BYTES])
{
    return memory_u32(bytes + SENDER_AT);
}

uint64_t frame_length(const uint8_t bytes[FRAME_BYTES])
{
    return memory_u64(bytes + LENGTH_AT);
}
