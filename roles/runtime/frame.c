#include "frame.h"

#include "memory.h"

static const char FRAME_MAGIC[8] = {'O', 'R', 'C', 'H', 'F', 'R', 'M', '1'};

void frame_begin(struct frame *frame, const uint8_t plan[32], uint64_t epoch)
{
    memset(frame, 0, sizeof *frame);
    memcpy(frame->magic, FRAME_MAGIC, sizeof FRAME_MAGIC);
    memcpy(frame->plan, plan, sizeof frame->plan);
    frame->epoch = epoch;
}

const char *frame_fault(const struct frame *frame, const struct frame *expected)
{
    if (memcmp(frame, expected, offsetof(struct frame, epoch)) != 0 || frame->sender != expected->sender ||
        frame->kind != expected->kind || memcmp(frame->zero, expected->zero, sizeof frame->zero) != 0)
        return "frame-identity";
    if (frame->epoch != expected->epoch)
        return "frame-epoch";
    if (frame->round != expected->round)
        return "frame-round";
    return frame->length != expected->length ? "frame-bound" : NULL;
}

bool frame_may_begin(const void *bytes, size_t size)
{
    return memcmp(bytes, FRAME_MAGIC, size < sizeof FRAME_MAGIC ? size : sizeof FRAME_MAGIC) == 0;
}
