#include "text.h"

#include "memory.h"
#include "refuse.h"

static void put(struct text *text, char letter)
{
    if (text->used >= text->size)
        refuse("write-failed");
    text->bytes[text->used++] = letter;
}

void text_put(struct text *text, const char *string)
{
    while (*string != 0)
        put(text, *string++);
}

void text_put_number(struct text *text, uint64_t number)
{
    char digits[20];
    size_t count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0)
        put(text, digits[--count]);
}

void text_put_hex(struct text *text, const uint8_t *bytes, size_t size)
{
    static const char digits[16] = {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
    for (size_t i = 0; i < size; i++) {
        put(text, digits[bytes[i] >> 4]);
        put(text, digits[bytes[i] & 15]);
    }
}

void text_put_bits(struct text *text, double word)
{
    uint64_t bits;
    memcpy(&bits, &word, sizeof bits);
    bits = __builtin_bswap64(bits);
    text_put_hex(text, (const uint8_t *)&bits, sizeof bits);
}

void text_put_zero(struct text *text)
{
    put(text, 0);
    text->used--;
}

static char peek(const struct scan *scan)
{
    return scan->failed || scan->at == scan->end ? 0 : *scan->at;
}

bool scan_has(struct scan *scan, char next)
{
    if (next == 0 || peek(scan) != next)
        return false;
    scan->at++;
    return true;
}

void scan_literal(struct scan *scan, const char *literal)
{
    while (*literal != 0)
        if (!scan_has(scan, *literal++))
            scan->failed = true;
}

static bool is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

uint64_t scan_number(struct scan *scan)
{
    uint64_t number = 0;
    bool leading_zero = peek(scan) == '0';
    if (!is_digit(peek(scan)))
        scan->failed = true;
    while (is_digit(peek(scan))) {
        number = number * 10 + (uint64_t)(*scan->at++ - '0');
        if (number >> 53 != 0)
            scan->failed = true;
    }
    if (leading_zero && number != 0)
        scan->failed = true;
    return number;
}

static unsigned nibble(struct scan *scan)
{
    char letter = peek(scan);
    if (!is_digit(letter) && !(letter >= 'a' && letter <= 'f')) {
        scan->failed = true;
        return 0;
    }
    scan->at++;
    return (unsigned)(is_digit(letter) ? letter - '0' : letter - 'a' + 10);
}

void scan_hex(struct scan *scan, uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned high = nibble(scan);
        bytes[i] = (uint8_t)(high << 4 | nibble(scan));
    }
}

static bool is_name(char letter)
{
    char folded = (char)(letter | 0x20);
    return is_digit(letter) || (folded >= 'a' && folded <= 'z') || letter == '_' || letter == '-' || letter == '.';
}

void scan_name(struct scan *scan, char *name, size_t size)
{
    size_t used = 0;
    scan_literal(scan, "\"");
    if (peek(scan) == '.')
        scan->failed = true;
    while (is_name(peek(scan))) {
        if (used + 1 == size) {
            scan->failed = true;
            break;
        }
        name[used++] = *scan->at++;
    }
    name[used] = 0;
    if (used == 0)
        scan->failed = true;
    scan_literal(scan, "\"");
}
