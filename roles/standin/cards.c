#include "cards.h"

#include "files.h"
#include "memory.h"
#include "system.h"
#include "words.h"

enum { FILE_BYTES = 1 << 14 };

static unsigned hex_digit(char letter)
{
    char folded = (char)(letter | 0x20);
    if (letter >= '0' && letter <= '9')
        return (unsigned)(letter - '0');
    return folded >= 'a' && folded <= 'f' ? (unsigned)(folded - 'a' + 10) : 16;
}

/* At most eight digits; leaves `at` behind them. */
static bool take_hex(const char **at, uint64_t *number)
{
    const char *first = *at;
    *number = 0;
    for (; hex_digit(**at) < 16 && *at - first < 8; (*at)++)
        *number = *number << 4 | hex_digit(**at);
    return *at != first;
}

static bool take_letter(const char **at, char letter)
{
    bool is = **at == letter;
    *at += is;
    return is;
}

static bool take_address(const char **at, struct card *card)
{
    return take_hex(at, &card->domain) && take_letter(at, ':') && take_hex(at, &card->bus) && take_letter(at, ':') &&
           take_hex(at, &card->device) && take_letter(at, '.') && take_hex(at, &card->function) &&
           card->domain <= UINT16_MAX && card->bus <= UINT8_MAX && card->device < 32 && card->function < 8;
}

/* GPU- and 32 lower-case digits in groups of 8, 4, 4, 4 and 12. */
static bool take_uuid(struct scan *scan, struct card *card)
{
    const char *form = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    size_t digits = 0;
    for (size_t i = 0; form[i] != 0; i++) {
        char letter = *scan->at;
        card->uuid_text[i] = letter;
        if (form[i] != 'x' ? letter != form[i] : hex_digit(letter) > 15 || (letter >= 'A' && letter <= 'F'))
            return false;
        if (form[i] == 'x') {
            uint8_t *byte = &card->uuid[digits++ / 2];
            *byte = (uint8_t)((unsigned)*byte << 4 | hex_digit(letter));
        }
        scan->at++;
    }
    return true;
}

static bool take_fault(struct scan *scan, struct card *card)
{
    static const char *const named[] = {"none", "lost", "memory", "busy", "compute"};
    char name[NAME_BYTES];
    scan_form(scan, "%n@%u", name, &card->fault_at);
    for (card->fault = 0; card->fault < sizeof named / sizeof *named; card->fault++)
        if (words_same(name, named[card->fault]))
            return true;
    return false;
}

static bool take_product(struct scan *scan, struct card *card)
{
    size_t used = 0;
    while (*scan->at >= ' ' && *scan->at <= '~' && *scan->at != '<' && *scan->at != '&' && used < PRODUCT_BYTES - 1)
        card->product[used++] = *scan->at++;
    return used > 0 && scan_has(scan, '\n');
}

static bool take_card(struct scan *scan, struct card *card)
{
    scan_form(scan, "card minor=%u uuid=", &card->minor);
    if (scan->failed || card->minor > UINT8_MAX || !take_uuid(scan, card))
        return false;
    scan_form(scan, " bus=");
    if (scan->failed || !take_address(&scan->at, card))
        return false;
    scan_form(scan, " cc=%u.%u memory_mib=%u reserved_mib=%u used_mib=%u utilization=%u process=%u:%u mig=%u reset=%u",
              &card->major, &card->lesser, &card->memory_mib, &card->reserved_mib, &card->used_mib,
              &card->utilization, &card->process, &card->process_mib, &card->mig, &card->reset);
    scan_form(scan, " driver=%n fault=", card->driver);
    if (!take_fault(scan, card))
        return false;
    scan_form(scan, " name=");
    bool has_room = card->reserved_mib + card->used_mib <= card->memory_mib;
    return !scan->failed && has_room && take_product(scan, card);
}

bool cards_read(const char *file, struct cards *cards)
{
    static char text[FILE_BYTES];
    uint64_t size;
    int open = files_open(file, &size);
    if (open < 0)
        return false;
    bool is_read = size < sizeof text && files_read(open, text, size);
    system_close(open);
    if (!is_read)
        return false;
    text[size] = 0;
    struct scan scan = {text, false};
    memset(cards, 0, sizeof *cards);
    while (*scan.at != 0)
        if (cards->count == CARDS || !take_card(&scan, &cards->card[cards->count++]))
            return false;
    return scan.at == text + size;
}

int cards_at(const struct cards *cards, const char *address)
{
    struct card asked = {0};
    if (!take_address(&address, &asked) || *address != 0)
        return -1;
    for (size_t i = 0; i < cards->count; i++) {
        const struct card *card = &cards->card[i];
        if (card->domain == asked.domain && card->bus == asked.bus && card->device == asked.device &&
            card->function == asked.function)
            return (int)i;
    }
    return -1;
}

void cards_put_hex(struct text *text, uint64_t number, unsigned digits)
{
    while (digits-- > 0) {
        unsigned digit = number >> 4 * digits & 15;
        char letter[] = {(char)(digit < 10 ? '0' + digit : 'A' - 10 + digit), 0};
        text_put(text, "%n", letter);
    }
}

void cards_put_address(struct text *text, const struct card *card, unsigned digits)
{
    cards_put_hex(text, card->domain, digits);
    text_put(text, ":");
    cards_put_hex(text, card->bus, 2);
    text_put(text, ":");
    cards_put_hex(text, card->device, 2);
    text_put(text, ".%u", card->function);
}

struct release cards_release(const struct card *card)
{
    static const struct release since[] = {
        {595, 13020, 92}, {590, 13010, 91}, {580, 13000, 90}, {575, 12090, 88}, {570, 12080, 87}, {565, 12070, 86},
        {560, 12060, 85}, {555, 12050, 85}, {550, 12040, 84}, {545, 12030, 83}, {535, 12020, 82}, {530, 12010, 81},
        {525, 12000, 80}, {520, 11080, 78}, {515, 11070, 77}, {510, 11060, 76}, {495, 11050, 75}, {470, 11040, 74},
        {465, 11030, 73}, {460, 11020, 72}, {455, 11010, 71}, {450, 11000, 70}, {0, 10020, 65},
    };
    uint64_t branch = 0;
    for (const char *at = card->driver; *at >= '0' && *at <= '9'; at++)
        branch = branch * 10 + (uint64_t)(*at - '0');
    const struct release *release = since;
    while (release->branch > branch)
        release++;
    return *release;
}
