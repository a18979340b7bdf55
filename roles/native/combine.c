#include "combine.h"

#include "mesh.h"
#include "partition.h"
#include "peers.h"
#include "streams.h"

/* Window by window, so that a role holds no child's whole contribution, and the tree's levels work side by side. */
static void add_up(uint64_t round, word words[COMBINED_WORDS])
{
    uint64_t count;
    for (uint64_t first = 0; first < COMBINED_WORDS; first += count) {
        count = streams_piece(COMBINED_WORDS - first);
        if (HAS_CHILDREN)
            peers_receive_up(FRAME_CONTRIBUTION, round, streams_windows, count * sizeof(word));
        for (uint32_t child = 0; child < CHILD_COUNT; child++)
            for (uint64_t i = 0; i < count; i++)
                words[first + i] += streams_windows[child * count + i];
        if (!IS_ROOT)
            peers_send_up(FRAME_CONTRIBUTION, round, words + first, count * sizeof(word));
    }
}

#if GRADIENTS_PARTITIONED

enum { TAIL_WORDS = RESULT_WORDS + 1 }; /* what every role receives: the results and the mass */

/* Totals that are a slot's to receive, without the tail. */
static uint64_t count_totals(uint32_t slot)
{
    uint64_t count = 0;
    for (uint32_t field = 0; field < MEAN_COUNT; field++)
        count += partition_count(MEAN_SIZES[field], slot);
    return count;
}

static void deliver(uint64_t round, word words[COMBINED_WORDS])
{
    uint64_t own = 0;
    uint64_t next = 0;
    uint64_t all = count_totals(SLOT_SELF) + TAIL_WORDS;
    for (uint32_t child = 0; child < CHILD_COUNT; child++) {
        uint64_t below = count_totals(SLOT_CHILD + child);
        streams_begin(child, FRAME_TOTAL, round, below + TAIL_WORDS);
        all += below;
    }
    streams_begin(STREAM_UP, FRAME_TOTAL, round, all);
    /* Where a word goes lies before where it came from: what is overwritten has been passed on. */
    for (uint32_t field = 0; field < MEAN_COUNT; field++)
        for (uint64_t i = 0; i < MEAN_SIZES[field]; i++, next++) {
            uint32_t slot = partition_slot(i);
            if (slot == SLOT_NONE)
                continue;
            word total = IS_ROOT ? words[next] : streams_take(STREAM_UP);
            if (slot == SLOT_SELF)
                words[own++] = total;
            else
                streams_put(slot - SLOT_CHILD, total);
        }
    for (uint32_t i = 0; i < TAIL_WORDS; i++) {
        word total = IS_ROOT ? words[next++] : streams_take(STREAM_UP);
        words[own++] = total;
        for (uint32_t child = 0; child < CHILD_COUNT; child++)
            streams_put(child, total);
    }
}

#else

static void deliver(uint64_t round, word words[COMBINED_WORDS])
{
    streams_deliver(FRAME_TOTAL, round, words, COMBINED_WORDS);
}

#endif

void combine(uint64_t round, word words[COMBINED_WORDS])
{
    if (mesh_combine(round, words, COMBINED_WORDS))
        return;
    add_up(round, words);
    deliver(round, words);
}
