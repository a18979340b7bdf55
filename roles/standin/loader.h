/* A PTX text on its way into a module: word by word, until one is not what has to stand there. */
#ifndef LOADER_H
#define LOADER_H

#include "module.h"
#include "names.h"
#include "words.h"

struct loader {
    const char *at;
    struct word word; /* the one that is looked at */
    bool failed;      /* then no word comes any more */
    struct module *module;
    struct instruction *instructions;
    size_t instruction_count;
    struct word *targets; /* of the branch at each instruction; no characters where there is none */
    union value *constants;
    size_t constant_count;
    struct names names;
};

/* From here on no word comes any more: the text is refused. */
void loader_reject(struct loader *loader);

/* The word that is looked at, and on to the next. At the end of the text there is none: refused. */
struct word loader_next(struct loader *loader);

/* Takes the word if it is this one. */
bool loader_has(struct loader *loader, const char *text);

/* The calls below refuse the text if the word is another, no decimal number, or no name that can be declared:
 * letters, digits, `_ $ %`, and no digit first. */
void loader_expect(struct loader *loader, const char *text);
uint64_t loader_number(struct loader *loader);
struct word loader_name(struct loader *loader);

#endif
