/* nvidia-smi: what a machine with the cards of the file `cards`, in the current folder, would be told of them. */
#include "smi.h"

#include "facts.h"
#include "files.h"
#include "memory.h"
#include "system.h"
#include "words.h"

/* As the real one ends. */
enum { EXIT_ARGUMENT = 2, EXIT_NO_CARDS = 6, EXIT_NO_DRIVER = 9 };

enum { ANSWER_BYTES = 1 << 19 };

struct asked {
    bool log;
    bool xml;
    bool list;
    const char *gpus;
    const char *apps;
    bool is_csv;
    struct csv csv;
};

static void put_cell(struct text *text, const char *cell, size_t width)
{
    size_t begin = text->used;
    text_put(text, "%n", cell);
    while (text->used - begin < width)
        text_put(text, " ");
}

void smi_put_list(struct text *text, const struct cards *cards)
{
    for (size_t i = 0; i < cards->count; i++)
        text_put(text, "GPU %u: %n (UUID: %n)\n", i, cards->card[i].product, cards->card[i].uuid_text);
}

void smi_put_table(struct text *text, const struct cards *cards)
{
    static const char rule[] = "+------------------------------------------------------------------------+\n";
    facts_put(text, FACT_TIME, cards, 0);
    text_put(text, "\n%n| NVIDIA-SMI (" SMI_NOTE ")   Driver Version: ", rule);
    put_cell(text, cards->card[0].driver, 11);
    text_put(text, " |\n%n", rule);
    for (size_t i = 0; i < cards->count; i++) {
        const struct card *card = &cards->card[i];
        text_put(text, "| %u  ", i);
        put_cell(text, card->product, 40);
        cards_put_address(text, card, 8);
        text_put(text, "\n|    %uMiB / %uMiB   %u%n\n", card->used_mib, card->memory_mib, card->utilization, "%");
    }
    text_put(text, "%n", rule);
}

/* What follows `begin` in an argument; NULL if it does not begin so. */
static const char *past(const char *argument, const char *begin)
{
    while (*begin != 0 && *argument == *begin) {
        argument++;
        begin++;
    }
    return *begin == 0 ? argument : NULL;
}

static bool take_format(struct asked *asked, const char *format)
{
    asked->csv = (struct csv){true, true};
    asked->is_csv = words_same(format, "csv") || past(format, "csv,");
    for (const char *at = format; *at != 0;) {
        const char *left = past(at, "csv") ? past(at, "csv") : past(at, "noheader") ? past(at, "noheader")
                                                                                    : past(at, "nounits");
        if (!left || (*left != 0 && *left != ','))
            return false;
        asked->csv.has_header &= !past(at, "noheader");
        asked->csv.has_units &= !past(at, "nounits");
        at = left + (*left == ',');
    }
    return asked->is_csv;
}

static bool take_argument(struct asked *asked, const char *argument)
{
    if (words_same(argument, "-q"))
        return asked->log = true;
    if (words_same(argument, "-x"))
        return asked->xml = true;
    if (words_same(argument, "-L"))
        return asked->list = true;
    if (past(argument, "--format="))
        return take_format(asked, past(argument, "--format="));
    if (past(argument, "--query-gpu="))
        return (asked->gpus = past(argument, "--query-gpu=")) != NULL;
    return (asked->apps = past(argument, "--query-compute-apps=")) != NULL;
}

/* One question at a time; `-x` belongs to `-q`, a format to a query. */
static bool is_one_question(const struct asked *asked)
{
    int questions = asked->log + asked->list + (asked->gpus != NULL) + (asked->apps != NULL);
    return questions <= 1 && (!asked->xml || asked->log) && asked->is_csv == (asked->gpus || asked->apps);
}

static int answer(struct text *text, const struct asked *asked, const struct cards *cards)
{
    bool is_known = true;
    if (cards->count == 0) {
        text_put(text, "No devices were found\n");
        return EXIT_NO_CARDS;
    }
    if (asked->log)
        (asked->xml ? smi_put_xml : smi_put_log)(text, cards);
    else if (asked->list)
        smi_put_list(text, cards);
    else if (asked->gpus)
        is_known = smi_put_gpus(text, cards, asked->gpus, asked->csv);
    else if (asked->apps)
        is_known = smi_put_apps(text, cards, asked->apps, asked->csv);
    else
        smi_put_table(text, cards);
    return is_known ? 0 : EXIT_ARGUMENT;
}

static int run_smi(struct text *text, int count, const char *const *arguments)
{
    static struct cards cards;
    struct asked asked = {0};
    for (int i = 1; i < count; i++)
        if (!take_argument(&asked, arguments[i])) {
            text_put(text, "Invalid argument (" SMI_NOTE ")\n");
            return EXIT_ARGUMENT;
        }
    if (!is_one_question(&asked)) {
        text_put(text, "Invalid combination of arguments (" SMI_NOTE ")\n");
        return EXIT_ARGUMENT;
    }
    if (!cards_read("cards", &cards)) {
        text_put(text, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver (" SMI_NOTE ")\n");
        return EXIT_NO_DRIVER;
    }
    return answer(text, &asked, &cards);
}

MACHINE_ENTRY

__attribute__((noreturn, used)) void start_main(const uintptr_t *stack)
{
    static char bytes[ANSWER_BYTES];
    static const char note[] = "nvidia-smi: " SMI_NOTE "\n";
    struct text text = {bytes, sizeof bytes, 0};
    int code = run_smi(&text, (int)stack[0], (const char *const *)(stack + 1));
    files_write(2, note, sizeof note - 1);
    files_write(1, bytes, text.used);
    system_exit(code);
}
