#include "text.h"

#include <stdarg.h>

#include "refuse.h"

static void put(struct text *text, char letter)
{
    if (text->used >= text->size)
        refuse("write-failed");
    text->bytes[text->used++] = letter;
}

static void put_number(struct text *text, uint64_t number)
{
    char digits[20];
    size_t count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0)
        put(text, digits[--count]);
}

static void put_hex(struct text *text, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < 2 * size; i++) {
        unsigned digit = bytes[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15;
        put(text, (char)(digit < 10 ? '0' + digit : 'a' - 10 + digit));
    }
}

static void put_name(struct text *text, const char *name)
{
    while (*name != 0)
        put(text, *name++);
}

void text_put(struct text *text, const char *form, ...)
{
    va_list values;
    va_start(values, form);
    for (; *form != 0; form++) {
        if (*form != '%') {
            put(text, *form);
            continue;
        }
        uint64_t value = va_arg(values, uint64_t); /* numbers and pointers are passed alike, and taken once */
        uint64_t swapped = __builtin_bswap64(value);
        switch (*++form) {
        case 'u':
            put_number(text, value);
            break;
        case 'b':
            put_hex(text, (const uint8_t *)&swapped, sizeof swapped);
            break;
        case 'n':
            put_name(text, (const char *)value);
            break;
        default:
            put_hex(text, (const uint8_t *)value, *form == 'h' ? 32 : 16);
        }
    }
    va_end(values);
    /* Always a C string, of which the end is not counted. */
    put(text, 0);
    text->used--;
}

static void fail(struct scan *scan)
{
    scan->at = "";
    scan->failed = true;
}

bool scan_has(struct scan *scan, char next)
{
    bool has = *scan->at == next;
    scan->at += has;
    return has;
}

static bool is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

static uint64_t scan_number(struct scan *scan)
{
    const char *first = scan->at;
    uint64_t number = 0;
    while (is_digit(*scan->at) && number >> 53 == 0)
        number = number * 10 + (uint64_t)(*scan->at++ - '0');
    if (scan->at == first || number >> 53 != 0 || (*first == '0' && scan->at != first + 1))
        fail(scan);
    return number;
}

static void scan_hex(struct scan *scan, uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < 2 * size; i++) {
        char letter = *scan->at;
        if (!is_digit(letter) && !(letter >= 'a' && letter <= 'f')) {
            fail(scan);
            return;
        }
        scan->at++;
        bytes[i / 2] = (uint8_t)(bytes[i / 2] << 4 | (is_digit(letter) ? letter - '0' : letter - 'a' + 10));
    }
}

static bool is_name(char letter)
{
    char folded = (char)(letter | 0x20);
    return is_digit(letter) || (folded >= 'a' && folded <= 'z') || letter == '_' || letter == '-' || letter == '.';
}

static void scan_name(struct scan *scan, char *name)
{
    size_t used = 0;
    while (is_name(*scan->at) && used < NAME_BYTES - 1)
        name[used++] = *scan->at++;
    name[used] = 0;
    if (used == 0 || name[0] == '.')
        fail(scan);
}

void scan_form(struct scan *scan, const char *form, ...)
{
    va_list values;
    va_start(values, form);
    for (; *form != 0; form++) {
        if (*form != '%') {
            if (!scan_has(scan, *form))
                fail(scan);
            continue;
        }
        void *value = va_arg(values, void *);
        switch (*++form) {
        case 'u':
            *(uint64_t *)value = scan_number(scan);
            break;
        case 'n':
            scan_name(scan, value);
            break;
        default:
            scan_hex(scan, value, *form == 'h' ? 32 : 16);
        }
    }
    va_end(values);
}
