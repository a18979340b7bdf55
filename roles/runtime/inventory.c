#include "inventory.h"

#include "files.h"
#include "dl.h"
#include "memory.h"
#include "refuse.h"
#include "system.h"
#include "text.h"

#define PROC "/proc/driver/nvidia"
#define STAND_IN "standin"

enum { FILE_BYTES = 2048, INFORMATION_PATH = 64 + NAME_BYTES };

/* Of an entry of a folder, as the kernel gives it. */
enum { SIZE_AT = 16, NAME_AT = 19 };

/* The search for one minor. */
static struct {
    struct inventory *found;
    uint32_t minor;
    uint32_t cards;
    uint32_t fitting;
} search;

/* What the management library says of a card's place. */
struct place {
    char short_bus[16];
    uint32_t numbers[5];
    char bus[BUS_BYTES];
};

static void take_card(uint64_t minor, const char *bus)
{
    if (++search.cards > MOST_CARDS)
        refuse("device-inventory");
    if (minor == search.minor && search.fitting++ == 0)
        text_name(search.found->bus, "%n", bus);
}

/* The text of the file that was read last. */
static char file_text[FILE_BYTES];

/* Reads a whole file; false if there is none that can be read and fits. */
static bool read_whole(const char *name)
{
    uint64_t size = 0; /* files of the kernel have none */
    size_t used = 0;
    long got = 0;
    int file = files_open(name, &size);
    if (file < 0)
        return false;
    while (used < FILE_BYTES - 1 && (got = system_read(file, file_text + used, FILE_BYTES - 1 - used)) > 0)
        used += (size_t)got;
    system_close(file);
    file_text[used] = 0;
    return got == 0;
}

/* What follows `key` on the line that begins with it. Refuses where there is no such line. */
static const char *value_of(const char *text, const char *key)
{
    while (*text != 0) {
        const char *left = key;
        while (*left != 0 && *text == *left)
            text++, left++;
        if (*left == 0) {
            while (*text == ' ' || *text == '\t')
                text++;
            return text;
        }
        while (*text != 0 && *text++ != '\n')
            continue;
    }
    refuse("device-inventory");
}

static bool is_word_end(char letter)
{
    return letter == 0 || letter == ' ' || letter == '\t' || letter == '\n';
}

/* A card's file must say where it is as its folder's name does: that is what the driver is asked by. */
static void take_file(const char *folder, const char *bus)
{
    char path[INFORMATION_PATH];
    uint64_t minor = 0;
    text_name(path, "%n/%n/information", folder, bus);
    if (!read_whole(path))
        refuse("device-inventory");
    struct scan number = {value_of(file_text, "Device Minor:"), false};
    scan_form(&number, "%u", &minor);
    const char *told = value_of(file_text, "Bus Location:");
    size_t same = 0;
    while (bus[same] != 0 && told[same] == bus[same])
        same++;
    if (number.failed || !is_word_end(*number.at) || bus[same] != 0 || !is_word_end(told[same]) || same >= BUS_BYTES)
        refuse("device-inventory");
    take_card(minor, bus);
}

static void take_folder(const char *folder)
{
    static uint8_t entries[FILE_BYTES] __attribute__((aligned(8)));
    int file = (int)system_open(folder, OPEN_READ | OPEN_DIRECTORY);
    long got = 0;
    if (file == -ERROR_NOENT)
        return; /* some containers do not show it */
    if (file < 0)
        refuse("device-inventory");
    while ((got = system_call(CALL_GETDENTS, file, system_pointer(entries), sizeof entries, 0, 0)) > 0)
        for (long at = 0; at < got; at += entries[at + SIZE_AT] | entries[at + SIZE_AT + 1] << 8) {
            const char *name = (const char *)entries + at + NAME_AT;
            if (name[0] != '.')
                take_file(folder, name);
        }
    if (got < 0)
        refuse("device-inventory");
    system_close(file);
}

static bool is_digit_or_dot(char letter)
{
    return letter == '.' || (letter >= '0' && letter <= '9');
}

/* The release is the first word of digits and dots: `... Kernel Module  550.54.14  Thu Feb ...`. */
static void find_release(const char *text)
{
    while (*text != 0) {
        size_t size = 0;
        bool has_dot = false;
        while (is_digit_or_dot(text[size]))
            has_dot |= text[size++] == '.';
        if (has_dot && is_word_end(text[size]) && size < RELEASE_BYTES) {
            memcpy(search.found->release, text, size);
            return;
        }
        while (!is_word_end(*text))
            text++;
        while (*text != 0 && is_word_end(*text))
            text++;
    }
}

static void ask_kernel(bool is_simulated)
{
    take_folder(is_simulated ? STAND_IN PROC "/gpus" : PROC "/gpus");
    if (read_whole(is_simulated ? STAND_IN PROC "/version" : PROC "/version"))
        find_release(file_text);
    search.found->source = "proc";
}

/* The management library: its documented, versioned interface. */
static struct {
    int (*init)(void);
    int (*count)(unsigned *count);
    int (*card)(unsigned index, void **card);
    int (*minor)(void *card, unsigned *minor);
    int (*place)(void *card, struct place *place);
    int (*release)(char *release, unsigned size);
} nvml;

static const char *const NVML_NAMES[] = {
    "nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetMinorNumber",
    "nvmlDeviceGetPciInfo_v3", "nvmlSystemGetDriverVersion",
};

static void check_answer(int result)
{
    if (result != 0)
        refuse("device-inventory");
}

static void ask_library(bool is_simulated)
{
    void *library = dl_open("libnvidia-ml.so.1", is_simulated);
    unsigned count = 0;
    if (!library || !dl_take(library, NVML_NAMES, sizeof NVML_NAMES / sizeof *NVML_NAMES, &nvml))
        refuse("device-inventory");
    check_answer(nvml.init());
    check_answer(nvml.count(&count));
    for (unsigned i = 0; i < count; i++) {
        struct place place; /* its domain has 8 digits; the kernel's, which drivers are asked by, 4 */
        void *card = NULL;
        unsigned minor = 0;
        check_answer(nvml.card(i, &card));
        check_answer(nvml.minor(card, &minor));
        check_answer(nvml.place(card, &place));
        place.bus[BUS_BYTES - 1] = 0;
        take_card(minor, place.bus + (place.bus[8] == ':' && memcmp(place.bus, "0000", 4) == 0 ? 4 : 0));
    }
    check_answer(nvml.release(search.found->release, RELEASE_BYTES));
    search.found->source = "nvml";
}

void inventory_find(struct inventory *inventory, uint32_t minor, bool is_simulated)
{
    search.found = inventory;
    search.minor = minor;
    ask_kernel(is_simulated);
    if (search.cards == 0)
        ask_library(is_simulated);
    if (search.fitting != 1)
        refuse(search.fitting == 0 ? "device-minor" : "device-minor-twice");
}
