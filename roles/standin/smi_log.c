#include "facts.h"
#include "smi.h"

/* What stands below a card, in both ways of writing it; a tag or key of NULL: not in that one. */
static const struct row {
    unsigned depth;
    const char *tag;
    const char *key;
    enum fact fact;
} rows[] = {
    {0, "product_name", "Product Name", FACT_PRODUCT},
    {0, "product_brand", "Product Brand", FACT_BRAND},
    {0, "display_mode", "Display Mode", FACT_DISABLED},
    {0, "display_active", "Display Active", FACT_DISABLED},
    {0, "persistence_mode", "Persistence Mode", FACT_DISABLED},
    {0, "mig_mode", "MIG Mode", FACT_GROUP},
    {1, "current_mig", "Current", FACT_MIG},
    {1, "pending_mig", "Pending", FACT_MIG},
    {0, "mig_devices", NULL, FACT_NONE},
    {0, "serial", "Serial Number", FACT_UNSUPPORTED},
    {0, "uuid", "GPU UUID", FACT_UUID},
    {0, "minor_number", "Minor Number", FACT_MINOR},
    {0, "vbios_version", "VBIOS Version", FACT_UNSUPPORTED},
    {0, "gpu_virtualization_mode", "GPU Virtualization Mode", FACT_GROUP},
    {1, "virtualization_mode", "Virtualization Mode", FACT_NONE},
    {0, "gpu_reset_status", "GPU Reset Status", FACT_GROUP},
    {1, "reset_required", "Reset Required", FACT_RESET},
    {1, "drain_and_reset_recommended", "Drain and Reset Recommended", FACT_UNSUPPORTED},
    {0, "gpu_recovery_action", "GPU Recovery Action", FACT_RECOVERY},
    {0, "pci", "PCI", FACT_GROUP},
    {1, "pci_bus", "Bus", FACT_BUS},
    {1, "pci_device", "Device", FACT_DEVICE},
    {1, "pci_domain", "Domain", FACT_DOMAIN},
    {1, "pci_bus_id", "Bus Id", FACT_ADDRESS},
    {0, "fan_speed", "Fan Speed", FACT_UNSUPPORTED},
    {0, "performance_state", "Performance State", FACT_PERFORMANCE},
    {0, "fb_memory_usage", "FB Memory Usage", FACT_GROUP},
    {1, "total", "Total", FACT_TOTAL},
    {1, "reserved", "Reserved", FACT_RESERVED},
    {1, "used", "Used", FACT_USED},
    {1, "free", "Free", FACT_FREE},
    {0, "compute_mode", "Compute Mode", FACT_DEFAULT},
    {0, "utilization", "Utilization", FACT_GROUP},
    {1, "gpu_util", "GPU", FACT_UTILIZATION},
    {1, "memory_util", "Memory", FACT_MEMORY_UTILIZATION},
    {0, "ecc_mode", "ECC Mode", FACT_GROUP},
    {1, "current_ecc", "Current", FACT_UNSUPPORTED},
    {1, "pending_ecc", "Pending", FACT_UNSUPPORTED},
    {0, NULL, NULL, FACT_NONE},
};

/* And below its list of processes, if it has one. */
static const struct row process_rows[] = {
    {1, "gpu_instance_id", "GPU instance ID", FACT_UNSUPPORTED},
    {1, "compute_instance_id", "Compute instance ID", FACT_UNSUPPORTED},
    {1, "pid", "Process ID", FACT_PROCESS},
    {2, "type", "Type", FACT_PROCESS_KIND},
    {2, "process_name", "Name", FACT_PROCESS_NAME},
    {2, "used_memory", "Used GPU Memory", FACT_PROCESS_USED},
    {0, NULL, NULL, FACT_NONE},
};

enum { KEY_COLUMNS = 42, INDENT = 4 };

static void put_fact(struct text *text, enum fact fact, const struct cards *cards, size_t index)
{
    const char *unit = facts_unit(fact);
    facts_put(text, fact, cards, index);
    text_put(text, *unit != 0 ? " %n" : "%n", unit);
}

static void put_element(struct text *text, unsigned depth, const struct row *row, const struct cards *cards,
                        size_t index)
{
    for (unsigned i = 0; i < depth; i++)
        text_put(text, "\t");
    text_put(text, "<%n>", row->tag);
    if (row->fact == FACT_GROUP) {
        text_put(text, "\n");
        return;
    }
    put_fact(text, row->fact, cards, index);
    text_put(text, "</%n>\n", row->tag);
}

/* The rows up to the one without names; a group ends where a row of its depth or less comes. */
static void put_elements(struct text *text, const struct cards *cards, size_t index)
{
    const char *open = NULL;
    for (const struct row *row = rows;; row++) {
        if (open && row->depth == 0) {
            text_put(text, "\t\t</%n>\n", open);
            open = NULL;
        }
        if (!row->tag)
            return;
        put_element(text, row->depth + 2, row, cards, index);
        if (row->fact == FACT_GROUP)
            open = row->tag;
    }
}

static void put_process_elements(struct text *text, const struct cards *cards, size_t index)
{
    text_put(text, "\t\t<processes>\n");
    if (cards->card[index].process != 0) {
        text_put(text, "\t\t\t<process_info>\n");
        for (const struct row *row = process_rows; row->tag; row++)
            put_element(text, 4, row, cards, index);
        text_put(text, "\t\t\t</process_info>\n");
    }
    text_put(text, "\t\t</processes>\n\t\t<accounted_processes>\n\t\t</accounted_processes>\n");
}

void smi_put_xml(struct text *text, const struct cards *cards)
{
    static const struct row head[] = {{1, "timestamp", NULL, FACT_TIME},
                                      {1, "driver_version", NULL, FACT_DRIVER},
                                      {1, "cuda_version", NULL, FACT_CUDA},
                                      {1, "attached_gpus", NULL, FACT_COUNT}};
    text_put(text, "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n");
    text_put(text, "<!-- " SMI_NOTE " -->\n<nvidia_smi_log>\n");
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        put_element(text, 1, &head[i], cards, 0);
    for (size_t index = 0; index < cards->count; index++) {
        text_put(text, "\t<gpu id=\"");
        cards_put_address(text, &cards->card[index], 8);
        text_put(text, "\">\n");
        put_elements(text, cards, index);
        put_process_elements(text, cards, index);
        text_put(text, "\t</gpu>\n\n");
    }
    text_put(text, "</nvidia_smi_log>\n");
}

static void put_line(struct text *text, const struct row *row, const struct cards *cards, size_t index)
{
    size_t begin = text->used;
    for (unsigned i = 0; i < INDENT * row->depth; i++)
        text_put(text, " ");
    text_put(text, "%n", row->key);
    if (row->fact != FACT_GROUP) {
        while (text->used - begin < KEY_COLUMNS)
            text_put(text, " ");
        text_put(text, row->fact == FACT_BUS || row->fact == FACT_DEVICE || row->fact == FACT_DOMAIN ? ": 0x" : ": ");
        put_fact(text, row->fact, cards, index);
    }
    text_put(text, "\n");
}

static void put_lines(struct text *text, const struct row *lines, const struct cards *cards, size_t index)
{
    for (const struct row *row = lines; row->tag; row++) {
        struct row deeper = *row;
        deeper.depth++;
        if (row->key)
            put_line(text, &deeper, cards, index);
    }
}

void smi_put_log(struct text *text, const struct cards *cards)
{
    static const struct row head[] = {{0, "", "Timestamp", FACT_TIME},
                                      {0, "", "Driver Version", FACT_DRIVER},
                                      {0, "", "CUDA Version", FACT_CUDA},
                                      {0, "", "Attached GPUs", FACT_COUNT}};
    static const struct row processes = {1, "", "Processes", FACT_NONE}, listed = {1, "", "Processes", FACT_GROUP};
    text_put(text, "\n==============NVSMI LOG==============\n\nStand-In                                  : " SMI_NOTE "\n");
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        put_line(text, &head[i], cards, 0);
    for (size_t index = 0; index < cards->count; index++) {
        text_put(text, "\nGPU ");
        cards_put_address(text, &cards->card[index], 8);
        text_put(text, "\n");
        put_lines(text, rows, cards, index);
        put_line(text, cards->card[index].process != 0 ? &listed : &processes, cards, index);
        if (cards->card[index].process != 0)
            put_lines(text, process_rows, cards, index);
    }
    text_put(text, "\n");
}
