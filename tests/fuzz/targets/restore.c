/* Input: a checkpoint set, each file as `name size\n` and its bytes. A first byte that is odd has every digest and size
 * in the manifests made to fit, so that what lies behind them is reached. */
#include "restore.h"

#include <stdio.h>
#include <string.h>

#include "machine.h"
#include "sha256.h"

static uint8_t room[MOST_FILES][MOST_BYTES];
static char names[MOST_FILES][300];

static const uint8_t *take_file(const uint8_t *at, const uint8_t *end)
{
    struct fake_file *file = machine.files + machine.file_count;
    char *name = names[machine.file_count];
    size_t used = (size_t)snprintf(name, 9, "restore/");
    size_t size = 0;
    while (at < end && *at != ' ' && *at != '\n' && used < sizeof names[0] - 1)
        name[used++] = (char)*at++;
    name[used] = 0;
    for (at += at < end; at < end && *at >= '0' && *at <= '9' && size < MOST_BYTES; at++)
        size = size * 10 + (size_t)(*at - '0');
    at += at < end;
    if (size > (size_t)(end - at))
        size = (size_t)(end - at);
    if (size > MOST_BYTES)
        size = MOST_BYTES;
    *file = (struct fake_file){name, room[machine.file_count], size};
    memcpy(file->bytes, at, size);
    machine.file_count++;
    return at + size;
}

static struct fake_file *named(const char *text, size_t size)
{
    for (size_t i = 0; i < machine.file_count; i++) {
        const char *name = machine.files[i].name + 8;
        if (strlen(name) == size && memcmp(name, text, size) == 0)
            return machine.files + i;
    }
    return NULL;
}

static char *after(char *text, const char *key)
{
    char *at = text ? strstr(text, key) : NULL;
    return at ? at + strlen(key) : NULL;
}

/* Makes one manifest agree with the files that it names. */
static void fit(struct fake_file *manifest)
{
    static char text[MOST_BYTES + 1];
    static char fitted[MOST_BYTES + 64 * 1024];
    memcpy(text, manifest->bytes, manifest->size);
    text[manifest->size] = 0;
    size_t used = 0;
    char *from = text; /* what is not yet in `fitted` begins there */
    char *at = text;
    for (char *name; (name = after(at, "\"file\":\"")) != NULL;) {
        struct fake_file *file = named(name, strcspn(name, "\""));
        char *digest = after(name, "\"sha256\":\"");
        char *size = after(digest, "\",\"size\":");
        at = name;
        if (!file || !size || size - digest < 64 || used + (size_t)(size - from) + 100 > sizeof fitted)
            continue;
        uint8_t found[SHA256_BYTES];
        sha256_of(file->bytes, file->size, found);
        for (size_t i = 0; i < SHA256_BYTES; i++) {
            digest[2 * i] = "0123456789abcdef"[found[i] >> 4];
            digest[2 * i + 1] = "0123456789abcdef"[found[i] & 15];
        }
        memcpy(fitted + used, from, (size_t)(size - from));
        used += (size_t)(size - from);
        used += (size_t)snprintf(fitted + used, 24, "%zu", file->size);
        from = size + strspn(size, "0123456789");
        at = from;
    }
    size_t rest = strlen(from);
    if (used + rest > MOST_BYTES)
        return;
    memcpy(fitted + used, from, rest);
    manifest->size = used + rest;
    memcpy(manifest->bytes, fitted, manifest->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct binding binding = {.epoch = 1000};
    const uint8_t *end = data + size;
    if (size == 0)
        return 0;
    machine = (struct machine){.patience = 8};
    for (const uint8_t *at = data + 1; at < end && machine.file_count < MOST_FILES;)
        at = take_file(at, end);
    for (size_t i = machine.file_count; data[0] % 2 == 1 && i-- > 0;) /* parts stand behind what names them */
        if (strstr(machine.files[i].name, "manifest.json"))
            fit(machine.files + i);
    if (!WAS_REFUSED(restore(&binding)))
        return 0;
    DEMAND(strncmp(machine.label, "checkpoint-", 11) == 0 || strcmp(machine.label, "non-finite") == 0);
    return 0;
}
