#include "words.h"

#include "memory.h"

bool words_same(const char *left, const char *right)
{
    while (*left != 0 && *left == *right) {
        left++;
        right++;
    }
    return *left == *right;
}

static bool is_blank(char letter)
{
    return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r';
}

static bool is_inner(char letter)
{
    char folded = (char)(letter | 0x20);
    return (letter >= '0' && letter <= '9') || (folded >= 'a' && folded <= 'z') || letter == '_' || letter == '$' ||
           letter == '%' || letter == '.';
}

static const char *past_comment(const char *at)
{
    if (at[1] == '/')
        while (*at != 0 && *at != '\n')
            at++;
    else
        for (at += 2; *at != 0; at++)
            if (at[0] == '*' && at[1] == '/')
                return at + 2;
    return at;
}

struct word words_next(const char **at)
{
    const char *first = *at;
    while (is_blank(*first) || (first[0] == '/' && (first[1] == '/' || first[1] == '*')))
        first = is_blank(*first) ? first + 1 : past_comment(first);
    const char *end = first;
    while (is_inner(*end))
        end++;
    if (end == first && *end != 0)
        end++;
    *at = end;
    return (struct word){first, (size_t)(end - first)};
}

bool word_is(struct word word, const char *text)
{
    size_t i = 0;
    while (i < word.size && text[i] == word.at[i])
        i++;
    return i == word.size && text[i] == 0;
}

bool word_equals(struct word left, struct word right)
{
    return left.size == right.size && memcmp(left.at, right.at, left.size) == 0;
}

bool word_number(struct word word, size_t from, unsigned base, uint64_t *number)
{
    *number = 0;
    for (size_t i = from; i < word.size; i++) {
        char folded = (char)(word.at[i] | 0x20);
        unsigned digit = folded >= 'a' && folded <= 'z' ? (unsigned)(folded - 'a' + 10) : (unsigned)(word.at[i] - '0');
        if (digit >= base || *number > (UINT64_MAX - digit) / base)
            return false;
        *number = *number * base + digit;
    }
    return word.size > from;
}
