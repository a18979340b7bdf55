/* Words that have one owner each, brought together: every word is taken from whom it belongs to, and none is
 * computed. They travel in field order, then coordinate order, those of a subtree together. */
#ifndef SELECTION_H
#define SELECTION_H

#include <stdint.h>

#include "plan.h"

struct selection {
    uint32_t kind; /* of the frames */
    uint64_t round;
    /* The fields from `first` to `end` - 1 that are held so. */
    uint32_t first;
    uint32_t end;
    enum holding holding;
    /* For the root: takes each word, in order. */
    void (*take)(uint32_t field, uint64_t coordinate, word value);
};

/* Every owner's words up the tree, to the root. */
void selection_gather(const struct selection *selection);

#endif
