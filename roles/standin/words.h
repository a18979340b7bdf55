/* Text cut into words: runs of letters, digits and `_ $ % .`, and every other character by itself. */
#ifndef WORDS_H
#define WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What stands in a longer text; of no characters at its end. */
struct word {
    const char *at;
    size_t size;
};

bool words_same(const char *left, const char *right);

/* Moves `at`, in a text that ends in a zero byte, past blanks, comments and one word. */
struct word words_next(const char **at);

bool word_is(struct word word, const char *text);
bool word_equals(struct word left, struct word right);

/* The number in digits of this base (10 or 16) that the word is from `from` on. False: it is none, or has more
 * than 64 bits. */
bool word_number(struct word word, size_t from, unsigned base, uint64_t *number);

#endif
