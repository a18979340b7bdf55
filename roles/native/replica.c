#include "replica.h"

#include "frame.h"
#include "learner.h"
#include "refuse.h"
#include "selection.h"
#include "streams.h"
#include "system.h"

#if PARAMETERS_PARTITIONED

enum { REPLICA_BYTES = PARAMETER_WORDS * sizeof(word) };
enum { READ_WRITE = 1 | 2, PRIVATE_ANONYMOUS = 2 | 0x20 };

static struct {
    word *words; /* NULL: released */
    uint64_t version;
} replica;

/* Where a parameter field lies in the replica. */
static word *replica_field(uint32_t field)
{
    word *place = replica.words;
    for (uint32_t before = 0; before < field; before++)
        place += FIELDS[before].size;
    return place;
}

static void take_offer(uint32_t field, uint64_t coordinate, word value)
{
    replica_field(field)[coordinate] = value;
}

/* Memory of its own: once given back, nobody reads it by mistake. */
static word *map(void)
{
    long mapped = system_call6(CALL_MAP, 0, REPLICA_BYTES, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0);
    if (mapped < 0 && mapped > -4096)
        refuse("data-parallel-replica-released");
    return (word *)mapped;
}

void replica_offer(uint64_t version)
{
    static const struct selection offered = {FRAME_OFFER, 0, 0, PARAMETER_COUNT, PARTITIONED, take_offer};
    struct selection selection = offered;
    selection.round = version;
    replica_check_released();
    replica.words = map();
    selection_gather(&selection);
}

void replica_materialize(uint64_t version)
{
    for (uint32_t field = 0; field < PARAMETER_COUNT; field++) {
        word *words = replica_field(field);
        if (FIELDS[field].holding == PARTITIONED)
            streams_deliver(FRAME_REPLICA, version, words, FIELDS[field].size);
        else /* shared: every role has it */
            for (uint64_t i = 0; i < FIELDS[field].size; i++)
                words[i] = learner_field(field)[i];
    }
    replica.version = version;
}

word *replica_contribute(uint64_t version)
{
    if (!replica.words)
        refuse("data-parallel-replica-released");
    if (replica.version != version)
        refuse("data-parallel-replica-version");
    return replica.words;
}

void replica_release(void)
{
    (void)system_call(CALL_UNMAP, system_pointer(replica.words), REPLICA_BYTES, 0, 0, 0);
    replica.words = NULL;
}

void replica_check_released(void)
{
    if (replica.words)
        refuse("data-parallel-replica-retained");
}

#else

/* Parameters that every role holds are read where they lie. */

void replica_offer(uint64_t version)
{
    (void)version;
}

void replica_materialize(uint64_t version)
{
    (void)version;
}

word *replica_contribute(uint64_t version)
{
    (void)version;
    return learner_field(0);
}

void replica_release(void)
{
}

void replica_check_released(void)
{
}

#endif
