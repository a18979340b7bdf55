#include "rounds.h"

#include "clock.h"
#include "combine.h"
#include "files.h"
#include "publish.h"
#include "replica.h"
#include "selection.h"
#include "sha256.h"
#include "streams.h"
#include "text.h"

/* One round that reads the state of `version`: what comes of it is the total. */
static void compute_total(uint64_t round, uint64_t version, word total[COMBINED_WORDS])
{
    replica_offer(version);
    replica_materialize(version);
    learner_contribute(replica_contribute(version), total);
    clock_check_run();
    combine(round, total);
    replica_release();
    learner_check_total(total);
    learner_complete(total);
}

#if !UPDATE_IS_WHOLE

static void take_updated(uint32_t field, uint64_t coordinate, word value)
{
    learner_field(field)[coordinate] = value;
}

/* Words that all hold and one has computed: from their owners, to everybody. */
static void assemble(uint64_t version)
{
    struct selection selection = {FRAME_SELECT, version, 0, FIELD_COUNT, REPLICATED, take_updated};
    selection_gather(&selection);
    for (uint32_t field = 0; field < FIELD_COUNT; field++)
        if (FIELDS[field].holding == REPLICATED) {
            streams_deliver(FRAME_SELECTED, version, learner_field(field), FIELDS[field].size);
            learner_renew(field);
        }
}

#else

static void assemble(uint64_t version)
{
    (void)version;
}

#endif

static void note_progress(int file, uint64_t version, const word total[TOTAL_WORDS])
{
    char line[20 + 1 + 64 + 1 + 16 + 2];
    struct text text = {line, sizeof line, 0};
    uint8_t digest[SHA256_BYTES];
    learner_digest(digest);
    text_put(&text, "%u %h %b\n", version, digest, learner_bits((double)total[OWN_MEAN_WORDS + LOSS_RESULT]));
    files_write(file, line, text.used);
}

void rounds_train(const struct binding *binding, uint64_t start, word total[COMBINED_WORDS])
{
    int progress = -1;
    for (uint64_t version = start + 1; version <= binding->target; version++) {
        compute_total(version, version - 1, total);
        replica_check_released();
        learner_update(total);
        assemble(version);
        if (progress < 0)
            progress = files_append_to("progress");
        note_progress(progress, version, total);
        if (version == binding->target || version == binding->publish_at)
            publish(binding, version);
    }
}

void rounds_evaluate(uint64_t start, word total[COMBINED_WORDS])
{
    compute_total(start, start, total);
    learner_capture();
}
