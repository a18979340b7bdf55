/* What nvidia-smi says of a card, fact by fact, and how each is written. */
#ifndef FACTS_H
#define FACTS_H

#include "cards.h"
#include "text.h"

enum fact {
    FACT_GROUP, /* no fact: a heading of others */
    FACT_NONE, FACT_UNSUPPORTED, FACT_DISABLED, FACT_DEFAULT, FACT_PERFORMANCE, FACT_INDEX, FACT_COUNT, FACT_PRODUCT,
    FACT_BRAND, FACT_UUID, FACT_MINOR, FACT_ADDRESS, FACT_BUS, FACT_DEVICE, FACT_DOMAIN, FACT_MIG, FACT_RESET,
    FACT_RECOVERY, FACT_TOTAL, FACT_RESERVED, FACT_USED, FACT_FREE, FACT_UTILIZATION, FACT_MEMORY_UTILIZATION,
    FACT_DRIVER, FACT_CUDA, FACT_CAPABILITY, FACT_TIME, FACT_PROCESS, FACT_PROCESS_KIND, FACT_PROCESS_NAME,
    FACT_PROCESS_USED,
};

/* Without its unit. */
void facts_put(struct text *text, enum fact fact, const struct cards *cards, size_t index);

/* MiB, %, or of no characters. */
const char *facts_unit(enum fact fact);

#endif
