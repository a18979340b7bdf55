/* A native role, from its start to its one line of results. */
#include "binding.h"
#include "checkpoint.h"
#include "clock.h"
#include "files.h"
#include "learner.h"
#include "memory.h"
#include "mesh.h"
#include "peers.h"
#include "publish.h"
#include "refuse.h"
#include "restore.h"
#include "rounds.h"
#include "sha256.h"
#include "system.h"

enum { STDOUT = 1, SIGNAL_PIPE = 13, SIGNAL_FILE_SIZE = 25, IGNORE = 1 };

enum { RESULT_LINE_BYTES = 512 + NAME_BYTES * (RESULT_WORDS + 1 + 4 * IS_DEVICE) };

static void say_results(const struct binding *binding, uint64_t version, const word total[TOTAL_WORDS])
{
    static char line[RESULT_LINE_BYTES];
    struct text text = {line, sizeof line, 0};
    uint8_t digest[SHA256_BYTES];
    const char *between = "";
    learner_digest(digest);
    learner_begin_line(&text);
    text_put(&text, LINE_BEGINS "\"epoch\":%u,\"held\":%u,\"mode\":\"%n\",\"results\":{", binding->epoch, (uint64_t)HELD_WORDS,
             binding->mode == MODE_TRAIN ? "train" : "evaluate");
    for (uint32_t i = 0; i < RESULT_WORDS; i++) {
        uint64_t bits = learner_bits((double)total[OWN_MEAN_WORDS + RESULTS[i].place]);
        text_put(&text, "%n\"%n\":\"%b\"", between, RESULTS[i].name, bits);
        between = ",";
    }
    text_put(&text, "},\"role\":\"" ROLE_NAME "\",\"samples\":%u,\"state\":\"%h\",\"version\":%u}\n",
             (uint64_t)ROLE_SAMPLES, digest, version);
    files_write(STDOUT, line, text.used);
}

static void play(const char *folder)
{
    static word total[COMBINED_WORDS];
    static struct binding binding;
    const long ignored[4] = {IGNORE, 0, 0, 0};
    uint64_t start = 0;
    /* Both come back as errors of the calls that met them. */
    (void)system_call(CALL_SIGACTION, SIGNAL_PIPE, system_pointer(ignored), 0, 8, 0);
    (void)system_call(CALL_SIGACTION, SIGNAL_FILE_SIZE, system_pointer(ignored), 0, 8, 0);
    if (system_call(CALL_CHDIR, system_pointer(folder), 0, 0, 0, 0) != 0)
        refuse("data-chunk");
    if (!machine_float_is_plain())
        refuse("float-environment");
    binding_read(&binding, identity.plan);
    clock_bound_run(binding.run_ms);
    learner_load_samples(binding.samples_digest);
    if (binding.resume || binding.mode == MODE_EVALUATE)
        start = restore(&binding);
    else
        learner_begin();
    if (binding.mode == MODE_TRAIN && binding.target <= start)
        refuse("binding");
    learner_settle(&binding);
    if (IS_ROOT && binding.mode == MODE_TRAIN)
        publish_withdraw(&binding); /* before others are met, none of whom publishes before */
    if (HAS_PEERS) {
        peers_meet(&binding, start);
        mesh_open(&binding, start);
    }
    if (binding.mode == MODE_TRAIN)
        rounds_train(&binding, start, total);
    else
        rounds_evaluate(start, total);
    say_results(&binding, binding.mode == MODE_TRAIN ? binding.target : start, total);
}

/* `stack` is as the kernel left it: the count of arguments, then the arguments. */
__attribute__((noreturn, used)) void start_main(const uintptr_t *stack)
{
    if (stack[0] != 2)
        refuse("binding");
    play((const char *)stack[2]);
    system_exit(0);
}

MACHINE_ENTRY
