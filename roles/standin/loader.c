#include "loader.h"

void loader_reject(struct loader *loader)
{
    loader->failed = true;
    loader->at = "";
    loader->word = (struct word){"", 0};
}

struct word loader_next(struct loader *loader)
{
    struct word word = loader->word;
    if (word.size == 0)
        loader_reject(loader);
    else
        loader->word = words_next(&loader->at);
    return word;
}

bool loader_has(struct loader *loader, const char *text)
{
    bool is = word_is(loader->word, text);
    if (is)
        (void)loader_next(loader);
    return is;
}

void loader_expect(struct loader *loader, const char *text)
{
    if (!loader_has(loader, text))
        loader_reject(loader);
}

uint64_t loader_number(struct loader *loader)
{
    uint64_t number;
    if (!word_number(loader_next(loader), 0, 10, &number))
        loader_reject(loader);
    return number;
}

struct word loader_name(struct loader *loader)
{
    struct word word = loader_next(loader);
    for (size_t i = 0; i < word.size; i++)
        if (word.at[i] == '.')
            loader_reject(loader);
    char first = word.size > 0 ? *word.at : 0;
    char folded = (char)(first | 0x20);
    if (!(folded >= 'a' && folded <= 'z') && first != '_' && first != '$' && first != '%')
        loader_reject(loader);
    return word;
}
