#include "statement.h"

#include "memory.h"

enum { OWN_REGISTERS = 1 << 20 };

/* `.reg` has been taken: a type, and a stem with a count. No stem ends in a digit: of two, neither has a
 * register of the other. */
static void take_registers(struct loader *loader, struct kernel *kernel)
{
    struct registers declared = {.first = SPECIAL_REGISTERS + kernel->own};
    if (!names_type(loader_next(loader), &declared.type))
        loader_reject(loader);
    declared.stem = loader_name(loader);
    loader_expect(loader, "<");
    declared.count = loader_number(loader);
    loader_expect(loader, ">");
    loader_expect(loader, ";");
    if (declared.count == 0 || declared.count > OWN_REGISTERS - kernel->own ||
        !names_add_registers(&loader->names, declared))
        loader_reject(loader);
    else
        kernel->own += (uint32_t)declared.count;
}

static bool is_kind(char kind, enum type type)
{
    switch (kind) {
    case 'p':
        return type == TYPE_PRED;
    case 'w':
        return type == TYPE_B32;
    case 'q':
        return type == TYPE_B64;
    case 'f':
        return type == TYPE_F32;
    default:
        return type == TYPE_F64;
    }
}

/* What a word says as a number: the bits of a floating-point one, after 0f or 0d, or a decimal integer. */
static bool is_constant(char kind, struct word word, uint64_t *number)
{
    switch (kind) {
    case 'f':
        return word.size == 10 && memcmp(word.at, "0f", 2) == 0 && word_number(word, 2, 16, number);
    case 'd':
        return word.size == 18 && memcmp(word.at, "0d", 2) == 0 && word_number(word, 2, 16, number);
    default: /* a leading zero would make it octal */
        return (*word.at != '0' || word.size == 1) && word_number(word, 0, 10, number) &&
               (kind == 'q' || (kind == 'w' && *number <= UINT32_MAX));
    }
}

/* The place of a value that is read. Constants lie behind the last register, in the order in which they come. */
static uint32_t take_source(struct loader *loader, char kind, const struct kernel *kernel)
{
    uint32_t at;
    uint64_t number;
    enum type type;
    struct word word = loader_next(loader);
    if (names_special(word) >= 0 && kind == 'w')
        return (uint32_t)names_special(word);
    if (names_register(&loader->names, word, &at, &type)) {
        if (!is_kind(kind, type))
            loader_reject(loader);
        return at;
    }
    if (!is_constant(kind, word, &number)) {
        loader_reject(loader);
        return 0;
    }
    union value *constant = &loader->constants[loader->constant_count++];
    constant->q = number;
    return SPECIAL_REGISTERS + kernel->own + (uint32_t)(constant - kernel->constants);
}

static uint32_t take_register(struct loader *loader, char kind)
{
    uint32_t at = 0;
    enum type type;
    if (!names_register(&loader->names, loader_next(loader), &at, &type) || !is_kind(kind, type))
        loader_reject(loader);
    return at;
}

static void take_memory(struct loader *loader, struct instruction *instruction, uint32_t *base)
{
    loader_expect(loader, "[");
    *base = take_register(loader, 'q');
    if (loader_has(loader, "+")) {
        uint64_t offset = loader_number(loader);
        if (offset > INT32_MAX)
            loader_reject(loader);
        instruction->at = (int64_t)offset;
    }
    loader_expect(loader, "]");
}

static void take_operand(struct loader *loader, char kind, struct instruction *instruction, size_t index,
                         const struct kernel *kernel)
{
    uint32_t *const fields[] = {&instruction->to, &instruction->a, &instruction->b, &instruction->c};
    switch (kind) {
    case 'a':
        loader_expect(loader, "[");
        instruction->at = names_parameter(&loader->names, loader_next(loader));
        if (instruction->at < 0)
            loader_reject(loader);
        loader_expect(loader, "]");
        break;
    case 'm':
        take_memory(loader, instruction, fields[index]);
        break;
    case 't':
        loader->targets[loader->instruction_count] = loader_name(loader);
        break;
    default:
        *fields[index] = index == 0 ? take_register(loader, kind) : take_source(loader, kind, kernel);
    }
}

static void take_guard(struct loader *loader)
{
    struct instruction skip = {.code = SKIP_UNLESS};
    skip.a = take_register(loader, 'p');
    loader->instructions[loader->instruction_count++] = skip;
}

/* The rest of an instruction whose word has been taken. */
static void take_instruction(struct loader *loader, struct word word, const struct kernel *kernel)
{
#define ROW_OF(name, text, kinds, what) {text, kinds},
    static const struct {
        const char *text;
        const char *kinds;
    } rows[] = {INSTRUCTIONS(ROW_OF)};
    size_t code = 0;
    while (code < sizeof rows / sizeof *rows && !word_is(word, rows[code].text))
        code++;
    if (code == sizeof rows / sizeof *rows) {
        loader_reject(loader);
        return;
    }
    struct instruction instruction = {.code = (enum code)code};
    for (size_t i = 0; rows[code].kinds[i] != 0; i++) {
        if (i > 0)
            loader_expect(loader, ",");
        take_operand(loader, rows[code].kinds[i], &instruction, i, kernel);
    }
    loader_expect(loader, ";");
    loader->instructions[loader->instruction_count++] = instruction;
}

void statement_take(struct loader *loader, struct kernel *kernel)
{
    size_t first = (size_t)(kernel->instructions - loader->instructions);
    if (loader_has(loader, ".reg")) {
        if (loader->instruction_count > first)
            loader_reject(loader); /* constants have their places already */
        take_registers(loader, kernel);
        return;
    }
    if (loader_has(loader, "@")) {
        take_guard(loader);
        take_instruction(loader, loader_next(loader), kernel);
        return;
    }
    struct word word = loader_next(loader);
    if (!loader_has(loader, ":")) {
        take_instruction(loader, word, kernel);
        return;
    }
    if (!names_add_place(&loader->names, word, (int64_t)(loader->instruction_count - first)))
        loader_reject(loader);
}
