#include "names.h"

bool names_type(struct word word, enum type *type)
{
    static const struct {
        const char *name;
        enum type type;
    } known[] = {
        {".pred", TYPE_PRED}, {".b32", TYPE_B32}, {".b64", TYPE_B64}, {".f32", TYPE_F32}, {".f64", TYPE_F64},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (word_is(word, known[i].name)) {
            *type = known[i].type;
            return true;
        }
    return false;
}

static bool ends_in_digit(struct word word)
{
    return word.size > 0 && word.at[word.size - 1] >= '0' && word.at[word.size - 1] <= '9';
}

bool names_add_registers(struct names *names, struct registers declared)
{
    for (size_t i = 0; i < names->register_count; i++)
        if (word_equals(names->registers[i].stem, declared.stem))
            return false;
    names->registers[names->register_count++] = declared;
    return !ends_in_digit(declared.stem);
}

bool names_add_place(struct names *names, struct word name, int64_t at)
{
    bool is_new = names_place(names, name) < 0;
    names->places[names->place_count++] = (struct place){name, at};
    return is_new;
}

/* Which of the registers of a declaration the word names. */
static bool is_of(const struct registers *registers, struct word word, uint64_t *number)
{
    size_t stem = registers->stem.size;
    if (word.size <= stem || !word_equals(registers->stem, (struct word){word.at, stem}))
        return false;
    bool is_plain = word.at[stem] != '0' || word.size == stem + 1;
    return is_plain && word_number(word, stem, 10, number) && *number < registers->count;
}

bool names_register(const struct names *names, struct word word, uint32_t *at, enum type *type)
{
    uint64_t number;
    for (size_t i = 0; i < names->register_count; i++)
        if (is_of(&names->registers[i], word, &number)) {
            *at = names->registers[i].first + (uint32_t)number;
            *type = names->registers[i].type;
            return true;
        }
    return false;
}

int names_special(struct word word)
{
    static const char *const known[] = {"%tid.x", "%ctaid.x"};
    for (int i = 0; i < (int)(sizeof known / sizeof *known); i++)
        if (word_is(word, known[i]))
            return i;
    return -1;
}

int names_parameter(const struct names *names, struct word word)
{
    for (size_t i = 0; i < names->parameter_count; i++)
        if (word_equals(names->parameters[i], word))
            return (int)i;
    return -1;
}

int64_t names_place(const struct names *names, struct word word)
{
    for (size_t i = 0; i < names->place_count; i++)
        if (word_equals(names->places[i].name, word))
            return names->places[i].at;
    return -1;
}
