#include "rounds.h"

#include "clock.h"
#include "files.h"
#include "peers.h"
#include "publish.h"
#include "sha256.h"
#include "text.h"

static double contributions[PEER_COUNT + 1][COMBINED_WORDS]; /* the root's alone */

/* Every word of the total is ((c0 + c1) + c2) + ..., in role order, whoever was first to send. */
static void combine(uint64_t round, double words[COMBINED_WORDS])
{
    enum { BYTES = COMBINED_WORDS * sizeof(double) };
    learner_contribute(words);
    clock_check_run();
    if (!IS_ROOT) {
        peers_send(FRAME_CONTRIBUTION, round, words, BYTES);
        peers_receive(FRAME_TOTAL, round, words, BYTES);
    } else if (HAS_PEERS) {
        peers_receive(FRAME_CONTRIBUTION, round, contributions, BYTES);
        for (uint32_t peer = 0; peer < PEER_COUNT; peer++)
            for (uint32_t word = 0; word < COMBINED_WORDS; word++)
                words[word] += contributions[peer][word];
        peers_send(FRAME_TOTAL, round, words, BYTES);
    }
    learner_check_total(words);
}

static void note_progress(int file, uint64_t version, const double total[COMBINED_WORDS])
{
    char line[20 + 1 + 64 + 1 + 16 + 2];
    struct text text = {line, sizeof line, 0};
    uint8_t digest[SHA256_BYTES];
    learner_digest(digest);
    text_put(&text, "%u %h %b\n", version, digest, learner_bits(total[MEAN_WORDS + LOSS_RESULT]));
    files_write(file, line, text.used);
}

void rounds_train(const struct binding *binding, uint64_t start, double total[COMBINED_WORDS])
{
    int progress = -1;
    for (uint64_t version = start + 1; version <= binding->target; version++) {
        combine(version, total);
        learner_update(total);
        if (progress < 0)
            progress = files_append_to("progress");
        note_progress(progress, version, total);
        if (version == binding->target || version == binding->publish_at)
            publish(binding, version);
    }
}

void rounds_evaluate(uint64_t start, double total[COMBINED_WORDS])
{
    combine(start, total);
}
