#include "selection.h"

#include "learner.h"
#include "partition.h"
#include "peers.h"
#include "streams.h"

static bool is_selected(const struct selection *selection, uint32_t field)
{
    return FIELDS[field].holding == selection->holding;
}

static void begin_streams(const struct selection *selection)
{
    uint64_t all = 0;
    for (uint32_t slot = 0; slot < SLOT_NONE; slot++) {
        uint64_t count = 0;
        for (uint32_t field = selection->first; field < selection->end; field++)
            if (is_selected(selection, field))
                count += partition_count(FIELDS[field].size, slot);
        all += count;
        if (slot >= SLOT_CHILD)
            streams_begin(slot - SLOT_CHILD, selection->kind, selection->round, count);
    }
    streams_begin(STREAM_UP, selection->kind, selection->round, all);
}

static void gather_field(const struct selection *selection, uint32_t field)
{
    const word *own = learner_field(field);
    uint64_t next = 0;
    for (uint64_t i = 0; i < FIELDS[field].size; i++) {
        uint32_t slot = partition_slot(i);
        if (slot == SLOT_NONE)
            continue;
        word value = slot != SLOT_SELF                          ? streams_take(slot - SLOT_CHILD)
                     : FIELDS[field].holding == PARTITIONED ? own[next++]
                                                            : own[i];
        if (IS_ROOT)
            selection->take(field, i, value);
        else
            streams_put(STREAM_UP, value);
    }
}

void selection_gather(const struct selection *selection)
{
    begin_streams(selection);
    for (uint32_t field = selection->first; field < selection->end; field++)
        if (is_selected(selection, field))
            gather_field(selection, field);
}
