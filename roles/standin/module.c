#include "module.h"

#include "loader.h"
#include "memory.h"
#include "space.h"
#include "statement.h"

enum { TEXT_BYTES = 1 << 24 };

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
            loader_reject(loader);
    }
    bool is_guarded = end > first + 1 && loader->instructions[end - 2].code == SKIP_UNLESS;
    if (end == first || is_guarded ||
        (loader->instructions[end - 1].code != RET && loader->instructions[end - 1].code != BRA))
        loader_reject(loader);
}

static void take_parameters(struct loader *loader, struct kernel *kernel)
{
    loader_expect(loader, "(");
    if (loader_has(loader, ")"))
        return;
    do {
        loader_expect(loader, ".param");
        loader_expect(loader, ".u64");
        struct word name = loader_name(loader);
        if (kernel->parameters == NAMES_PARAMETERS || names_parameter(&loader->names, name) >= 0) {
            loader_reject(loader);
            return;
        }
        loader->names.parameters[kernel->parameters++] = name;
        loader->names.parameter_count = kernel->parameters;
    } while (loader_has(loader, ","));
    loader_expect(loader, ")");
}

static void take_kernel(struct loader *loader)
{
    struct module *module = loader->module;
    struct kernel *kernel = &module->kernels[module->kernel_count];
    loader->names.register_count = loader->names.place_count = loader->names.parameter_count = 0;
    loader_expect(loader, ".visible");
    loader_expect(loader, ".entry");
    *kernel = (struct kernel){.name = loader_name(loader),
                              .instructions = loader->instructions + loader->instruction_count,
                              .constants = loader->constants + loader->constant_count};
    for (size_t i = 0; i < module->kernel_count; i++)
        if (word_equals(module->kernels[i].name, kernel->name))
            loader_reject(loader);
    take_parameters(loader, kernel);
    loader_expect(loader, "{");
    while (!loader->failed && !loader_has(loader, "}"))
        statement_take(loader, kernel);
    if (!loader->failed)
        end_kernel(loader, kernel);
    kernel->constant = (uint32_t)(loader->constants + loader->constant_count - kernel->constants);
    module->kernel_count++;
}

/* What target there is from which version of the language on. */
static bool is_target_of(uint64_t target, uint64_t version)
{
    static const uint64_t since[][2] = {{75, 63}, {80, 70}, {86, 71}, {87, 74}, {89, 78},
                                        {90, 78}, {100, 86}, {120, 87}, {121, 88}};
    for (size_t i = 0; i < sizeof since / sizeof *since; i++)
        if (target == since[i][0])
            return version >= since[i][1];
    return false;
}

static void take_head(struct loader *loader)
{
    loader_expect(loader, ".version");
    struct word version = loader_next(loader);
    uint64_t major = 0, minor = 0;
    if (version.size != 3 || version.at[1] != '.' || !word_number((struct word){version.at, 1}, 0, 10, &major) ||
        !word_number(version, 2, 10, &minor))
        loader_reject(loader);
    loader_expect(loader, ".target");
    struct word target = loader_next(loader);
    if (target.size < 5 || memcmp(target.at, "sm_", 3) != 0 || !word_number(target, 3, 10, &loader->module->target))
        loader_reject(loader);
    loader->module->version = 10 * major + minor;
    if (!is_target_of(loader->module->target, loader->module->version))
        loader_reject(loader);
    loader_expect(loader, ".address_size");
    loader_expect(loader, "64");
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
