#include "module.h"

#include "memory.h"
#include "names.h"
#include "space.h"

enum { TEXT_BYTES = 1 << 24, OWN_REGISTERS = 1 << 20 };

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

static void reject(struct loader *loader)
{
    loader->failed = true;
    loader->at = "";
    loader->word = (struct word){"", 0};
}

static struct word next(struct loader *loader)
{
    struct word word = loader->word;
    if (word.size == 0)
        reject(loader);
    else
        loader->word = words_next(&loader->at);
    return word;
}

static bool take_if(struct loader *loader, const char *text)
{
    bool is = word_is(loader->word, text);
    if (is)
        (void)next(loader);
    return is;
}

static void expect(struct loader *loader, const char *text)
{
    if (!take_if(loader, text))
        reject(loader);
}

static uint64_t take_number(struct loader *loader)
{
    uint64_t number;
    if (!word_number(next(loader), 0, 10, &number))
        reject(loader);
    return number;
}

/* A name that is declared: letters, digits, `_ $ %`, and no digit first. */
static struct word take_name(struct loader *loader)
{
    struct word word = next(loader);
    for (size_t i = 0; i < word.size; i++)
        if (word.at[i] == '.')
            reject(loader);
    char first = word.size > 0 ? *word.at : 0;
    char folded = (char)(first | 0x20);
    if (!(folded >= 'a' && folded <= 'z') && first != '_' && first != '$' && first != '%')
        reject(loader);
    return word;
}

/* `.reg` has been taken: a type, and names with or without a count. */
static void take_registers(struct loader *loader, struct kernel *kernel)
{
    enum type type, other;
    uint32_t at;
    if (!names_type(next(loader), &type))
        reject(loader);
    do {
        struct registers declared = {take_name(loader), 0, SPECIAL_REGISTERS + kernel->own, type};
        if (take_if(loader, "<")) {
            declared.count = take_number(loader);
            expect(loader, ">");
            if (declared.count == 0)
                reject(loader);
        }
        uint64_t count = declared.count > 0 ? declared.count : 1;
        if (count > OWN_REGISTERS - kernel->own || names_register(&loader->names, declared.name, &at, &other))
            reject(loader);
        if (loader->failed)
            return;
        kernel->own += (uint32_t)count;
        loader->names.registers[loader->names.register_count++] = declared;
    } while (take_if(loader, ","));
    expect(loader, ";");
}

static bool is_kind(char kind, enum type type)
{
    switch (kind) {
    case 'p':
        return type == TYPE_PRED;
    case 'w':
        return type == TYPE_INT32 || type == TYPE_B32;
    case 'f':
        return type == TYPE_F32 || type == TYPE_B32;
    case 'h':
        return type == TYPE_INT32 || type == TYPE_F32 || type == TYPE_B32;
    case 'q':
        return type == TYPE_INT64 || type == TYPE_B64;
    case 'd':
        return type == TYPE_F64 || type == TYPE_B64;
    default:
        return type == TYPE_INT64 || type == TYPE_F64 || type == TYPE_B64;
    }
}

/* What a word says as a number: 0f and 8 digits, 0d and 16, 0x, or decimal, of which a `-` may stand before. */
static bool is_constant(struct loader *loader, char kind, struct word word, uint64_t *number)
{
    char second = word.size > 2 && *word.at == '0' ? word.at[1] : 0;
    if (kind == 'f' || kind == 'd')
        return second == kind && word.size == (kind == 'f' ? 10 : 18) && word_number(word, 2, 16, number);
    if (kind != 'w' && kind != 'q')
        return false;
    bool is_negative = word_is(word, "-");
    uint64_t most = kind == 'w' ? UINT32_MAX : UINT64_MAX;
    if (is_negative) {
        word = next(loader);
        second = 0;
        most = most / 2 + 1;
    }
    bool is_number = second == 'x' ? word_number(word, 2, 16, number) : word_number(word, 0, 10, number);
    if (!is_number || *number > most || (second != 'x' && *word.at == '0' && word.size > 1))
        return false;
    if (is_negative)
        *number = kind == 'w' ? (uint32_t)-*number : -*number;
    return true;
}

/* The place of a value that is read. Constants have none yet: theirs are counted from the end of all registers. */
static uint32_t take_source(struct loader *loader, char kind, const struct kernel *kernel)
{
    uint32_t at;
    uint64_t number;
    enum type type;
    struct word word = next(loader);
    if (names_special(word) >= 0 && (kind == 'w' || kind == 'h'))
        return (uint32_t)names_special(word);
    if (names_register(&loader->names, word, &at, &type)) {
        if (!is_kind(kind, type))
            reject(loader);
        return at;
    }
    if (!is_constant(loader, kind, word, &number)) {
        reject(loader);
        return 0;
    }
    loader->constants[loader->constant_count].q = number;
    return (uint32_t)(SPECIAL_REGISTERS + kernel->own + (&loader->constants[loader->constant_count++] - kernel->constants));
}

static uint32_t take_register(struct loader *loader, char kind)
{
    uint32_t at = 0;
    enum type type;
    if (!names_register(&loader->names, next(loader), &at, &type) || !is_kind(kind, type))
        reject(loader);
    return at;
}

static void take_memory(struct loader *loader, struct instruction *instruction, uint32_t *base)
{
    expect(loader, "[");
    *base = take_register(loader, 'q');
    if (take_if(loader, "+")) {
        uint64_t offset = take_number(loader);
        if (offset > INT32_MAX)
            reject(loader);
        instruction->at = (int64_t)offset;
    }
    expect(loader, "]");
}

static void take_operand(struct loader *loader, char kind, struct instruction *instruction, size_t index,
                         const struct kernel *kernel)
{
    uint32_t *const fields[] = {&instruction->to, &instruction->a, &instruction->b, &instruction->c};
    switch (kind) {
    case 'a':
        expect(loader, "[");
        instruction->at = names_parameter(&loader->names, next(loader));
        if (instruction->at < 0)
            reject(loader);
        expect(loader, "]");
        break;
    case 'm':
        take_memory(loader, instruction, fields[index]);
        break;
    case 't':
        loader->targets[loader->instruction_count] = take_name(loader);
        break;
    default:
        *fields[index] = index == 0 ? take_register(loader, kind) : take_source(loader, kind, kernel);
    }
}

static void take_guard(struct loader *loader)
{
    struct instruction skip = {.code = take_if(loader, "!") ? SKIP_IF : SKIP_UNLESS};
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
        reject(loader);
        return;
    }
    struct instruction instruction = {.code = (enum code)code};
    for (size_t i = 0; rows[code].kinds[i] != 0; i++) {
        if (i > 0)
            expect(loader, ",");
        take_operand(loader, rows[code].kinds[i], &instruction, i, kernel);
    }
    expect(loader, ";");
    loader->instructions[loader->instruction_count++] = instruction;
}

static void take_statement(struct loader *loader, struct kernel *kernel)
{
    size_t first = (size_t)(kernel->instructions - loader->instructions);
    if (take_if(loader, ".reg")) {
        if (loader->instruction_count > first)
            reject(loader); /* constants lie behind the last register */
        take_registers(loader, kernel);
        return;
    }
    if (take_if(loader, "@")) {
        take_guard(loader);
        take_instruction(loader, next(loader), kernel);
        return;
    }
    struct word word = next(loader);
    if (!take_if(loader, ":")) {
        take_instruction(loader, word, kernel);
        return;
    }
    if (names_place(&loader->names, word) >= 0)
        reject(loader);
    struct place place = {word, (int64_t)(loader->instruction_count - first)};
    loader->names.places[loader->names.place_count++] = place;
}

/* Gives every branch its place. A kernel's last instruction is one that nothing goes past. */
static void end_kernel(struct loader *loader, const struct kernel *kernel)
{
    size_t first = (size_t)(kernel->instructions - loader->instructions);
    size_t end = loader->instruction_count;
    for (size_t i = first; i < end; i++) {
        if (loader->targets[i].size == 0)
            continue;
        loader->instructions[i].at = names_place(&loader->names, loader->targets[i]);
        if (loader->instructions[i].at < 0 || (size_t)loader->instructions[i].at == end - first)
            reject(loader);
    }
    bool is_guarded = end > first + 1 && loader->instructions[end - 2].code >= SKIP_IF;
    if (end == first || is_guarded ||
        (loader->instructions[end - 1].code != RET && loader->instructions[end - 1].code != BRA))
        reject(loader);
}

static void take_parameters(struct loader *loader, struct kernel *kernel)
{
    expect(loader, "(");
    while (kernel->parameters < MODULE_PARAMETERS && take_if(loader, ".param")) {
        expect(loader, ".u64");
        struct word name = take_name(loader);
        if (names_parameter(&loader->names, name) >= 0)
            reject(loader);
        loader->names.parameters[kernel->parameters++] = name;
        loader->names.parameter_count = kernel->parameters;
        if (!take_if(loader, ","))
            break;
    }
    expect(loader, ")");
}

static void take_kernel(struct loader *loader)
{
    struct module *module = loader->module;
    struct kernel *kernel = &module->kernels[module->kernel_count];
    loader->names.register_count = loader->names.place_count = loader->names.parameter_count = 0;
    expect(loader, ".visible");
    expect(loader, ".entry");
    *kernel = (struct kernel){.name = take_name(loader),
                              .instructions = loader->instructions + loader->instruction_count,
                              .constants = loader->constants + loader->constant_count};
    for (size_t i = 0; i < module->kernel_count; i++)
        if (word_equals(module->kernels[i].name, kernel->name))
            reject(loader);
    take_parameters(loader, kernel);
    expect(loader, "{");
    while (!loader->failed && !take_if(loader, "}"))
        take_statement(loader, kernel);
    if (!loader->failed)
        end_kernel(loader, kernel);
    kernel->constant = (uint32_t)(loader->constants + loader->constant_count - kernel->constants);
    module->kernel_count++;
}

/* What target there is from which version of the language on. */
static bool is_target_of(uint64_t target, uint64_t version)
{
    static const uint64_t since[][2] = {{75, 63}, {80, 70}, {86, 71}, {87, 74}, {89, 78}, {90, 78}, {100, 86},
                                        {120, 87}, {121, 88}};
    for (size_t i = 0; i < sizeof since / sizeof *since; i++)
        if (target == since[i][0])
            return version >= since[i][1];
    return false;
}

static void take_head(struct loader *loader)
{
    expect(loader, ".version");
    struct word version = next(loader);
    uint64_t major = 0, minor = 0;
    if (version.size != 3 || version.at[1] != '.' || !word_number((struct word){version.at, 1}, 0, 10, &major) ||
        !word_number(version, 2, 10, &minor))
        reject(loader);
    expect(loader, ".target");
    struct word target = next(loader);
    if (target.size < 5 || memcmp(target.at, "sm_", 3) != 0 || !word_number(target, 3, 10, &loader->module->target))
        reject(loader);
    loader->module->version = 10 * major + minor;
    if (!is_target_of(loader->module->target, loader->module->version))
        reject(loader);
    expect(loader, ".address_size");
    expect(loader, "64");
}

/* Room for all that a text can say: no name, label, instruction or kernel is without one of these characters. */
static bool make_room(struct loader *loader, const char *text, size_t size)
{
    size_t most = 1;
    for (size_t i = 0; i < size; i++)
        most += text[i] == ';' || text[i] == ',' || text[i] == ':' || text[i] == '{';
    loader->instructions = space_pages(2 * most * sizeof *loader->instructions);
    loader->targets = space_pages(2 * most * sizeof *loader->targets);
    loader->constants = space_pages(2 * most * sizeof *loader->constants);
    loader->names.registers = space_pages(most * sizeof *loader->names.registers);
    loader->names.places = space_pages(most * sizeof *loader->names.places);
    loader->module->kernels = space_pages(most * sizeof *loader->module->kernels);
    return loader->instructions && loader->targets && loader->constants && loader->names.registers &&
           loader->names.places && loader->module->kernels;
}

enum loaded module_load(const char *text, struct module *module)
{
    size_t size = 0;
    while (text[size] != 0)
        if (++size == TEXT_BYTES)
            return LOAD_REFUSED;
    char *own = space_pages(size + 1);
    struct loader loader = {.module = module};
    *module = (struct module){0};
    if (!own || !make_room(&loader, text, size))
        return LOAD_NO_MEMORY;
    memcpy(own, text, size);
    loader.at = own;
    loader.word = words_next(&loader.at);
    take_head(&loader);
    while (!loader.failed && loader.word.size > 0)
        take_kernel(&loader);
    return loader.failed ? LOAD_REFUSED : LOADED;
}
