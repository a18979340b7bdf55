#include "names.h"

bool names_type(struct word word, enum type *type)
{
    static const struct {
        const char *name;
        enum type type;
    } known[] = {
        {".pred", TYPE_PRED},  {".b32", TYPE_B32},   {".u32", TYPE_INT32}, {".s32", TYPE_INT32}, {".f32", TYPE_F32},
        {".b64", TYPE_B64},    {".u64", TYPE_INT64}, {".s64", TYPE_INT64}, {".f64", TYPE_F64},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (word_is(word, known[i].name)) {
            *type = known[i].type;
            return true;
        }
    return false;
}

/* Which of the registers of a declaration the word names. */
static bool is_of(const struct registers *registers, struct word word, uint64_t *number)
{
    *number = 0;
    if (registers->count == 0)
        return word_equals(registers->name, word);
    size_t stem = registers->name.size;
    if (word.size <= stem || !word_equals(registers->name, (struct word){word.at, stem}))
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
    static const char *const known[] = {"%tid.x", "%ntid.x", "%ctaid.x", "%nctaid.x"};
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
