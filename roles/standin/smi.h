/* What nvidia-smi can be asked, each answer into one text. */
#ifndef SMI_H
#define SMI_H

#include <stdbool.h>

#include "cards.h"
#include "text.h"

#define SMI_NOTE "simulated by orch's stand-in"

/* `-q -x` and `-q`. */
void smi_put_xml(struct text *text, const struct cards *cards);
void smi_put_log(struct text *text, const struct cards *cards);

struct csv {
    bool has_header;
    bool has_units;
};

/* `--query-gpu=COLUMNS` and `--query-compute-apps=COLUMNS`. False: there is no such column, and the text says so. */
bool smi_put_gpus(struct text *text, const struct cards *cards, const char *columns, struct csv csv);
bool smi_put_apps(struct text *text, const struct cards *cards, const char *columns, struct csv csv);

/* `-L`, and what comes without a question. */
void smi_put_list(struct text *text, const struct cards *cards);
void smi_put_table(struct text *text, const struct cards *cards);

#endif
