#include "facts.h"
#include "memory.h"
#include "smi.h"
#include "words.h"

struct column {
    const char *name;
    enum fact fact;
};

static const struct column gpu_columns[] = {
    {"timestamp", FACT_TIME},
    {"index", FACT_INDEX},
    {"count", FACT_COUNT},
    {"name", FACT_PRODUCT},
    {"gpu_name", FACT_PRODUCT},
    {"uuid", FACT_UUID},
    {"gpu_uuid", FACT_UUID},
    {"pci.bus_id", FACT_ADDRESS},
    {"gpu_bus_id", FACT_ADDRESS},
    {"driver_version", FACT_DRIVER},
    {"compute_cap", FACT_CAPABILITY},
    {"compute_mode", FACT_DEFAULT},
    {"mig.mode.current", FACT_MIG},
    {"gpu_recovery_action", FACT_RECOVERY},
    {"pstate", FACT_PERFORMANCE},
    {"memory.total", FACT_TOTAL},
    {"memory.reserved", FACT_RESERVED},
    {"memory.used", FACT_USED},
    {"memory.free", FACT_FREE},
    {"utilization.gpu", FACT_UTILIZATION},
    {"utilization.memory", FACT_MEMORY_UTILIZATION},
    {NULL, FACT_NONE},
};

static const struct column app_columns[] = {
    {"timestamp", FACT_TIME},           {"gpu_name", FACT_PRODUCT},
    {"gpu_bus_id", FACT_ADDRESS},       {"gpu_uuid", FACT_UUID},
    {"pid", FACT_PROCESS},              {"process_name", FACT_PROCESS_NAME},
    {"name", FACT_PROCESS_NAME},        {"used_gpu_memory", FACT_PROCESS_USED},
    {"used_memory", FACT_PROCESS_USED}, {NULL, FACT_NONE},
};

enum { MOST_COLUMNS = 64 };

/* The next name in a list with commas; NULL behind the last one. */
static const struct column *next_column(const char **list, const struct column *known, struct word *name)
{
    *name = (struct word){*list, 0};
    while (name->at[name->size] != 0 && name->at[name->size] != ',')
        name->size++;
    *list = name->at + name->size + (name->at[name->size] == ',');
    while (known->name && !word_is(*name, known->name))
        known++;
    return known;
}

static void put_heads(struct text *text, const struct column *const *columns, size_t count, struct csv csv)
{
    if (!csv.has_header)
        return;
    for (size_t i = 0; i < count; i++) {
        const char *unit = facts_unit(columns[i]->fact);
        text_put(text, i > 0 ? ", %n" : "%n", columns[i]->name);
        if (*unit != 0)
            text_put(text, " [%n]", unit);
    }
    text_put(text, "\n");
}

static void put_cells(struct text *text, const struct column *const *columns, size_t count, struct csv csv,
                      const struct cards *cards, size_t index)
{
    for (size_t i = 0; i < count; i++) {
        enum fact fact = columns[i]->fact;
        bool is_unsupported = fact == FACT_MIG && !cards->card[index].mig;
        text_put(text, i > 0 ? ", %n" : "%n", is_unsupported ? "[" : "");
        facts_put(text, fact, cards, index);
        if (csv.has_units && *facts_unit(fact) != 0)
            text_put(text, " %n", facts_unit(fact));
        text_put(text, is_unsupported ? "]" : "");
    }
    text_put(text, "\n");
}

/* The columns asked for, or 0 of them: the text says which one there is not. */
static size_t find_columns(struct text *text, const char *asked, const struct column *known,
                           const struct column *found[MOST_COLUMNS])
{
    size_t count = 0;
    do {
        struct word name;
        found[count] = next_column(&asked, known, &name);
        if (!found[count]->name || count == MOST_COLUMNS - 1) {
            text_put(text, "Field \"");
            for (size_t i = 0; i < name.size && i < NAME_BYTES; i++)
                text_put(text, "%n", (char[]){name.at[i], 0});
            text_put(text, "\" is not a valid field to query (" SMI_NOTE ").\n");
            return 0;
        }
        count++;
    } while (*asked != 0);
    return count;
}

bool smi_put_gpus(struct text *text, const struct cards *cards, const char *columns, struct csv csv)
{
    const struct column *found[MOST_COLUMNS];
    size_t count = find_columns(text, columns, gpu_columns, found);
    if (count > 0)
        put_heads(text, found, count, csv);
    for (size_t index = 0; count > 0 && index < cards->count; index++)
        put_cells(text, found, count, csv, cards, index);
    return count > 0;
}

bool smi_put_apps(struct text *text, const struct cards *cards, const char *columns, struct csv csv)
{
    const struct column *found[MOST_COLUMNS];
    size_t count = find_columns(text, columns, app_columns, found);
    if (count > 0)
        put_heads(text, found, count, csv);
    for (size_t index = 0; count > 0 && index < cards->count; index++)
        if (cards->card[index].process != 0)
            put_cells(text, found, count, csv, cards, index);
    return count > 0;
}
