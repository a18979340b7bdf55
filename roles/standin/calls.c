#include "calls.h"

#include "memory.h"
#include "system.h"

enum { LINE_BYTES = 256, DIGITS = 20, MINOR_DIGITS = 3 };

static int counted = -1;

static void put_field(struct text *text, const char *key, uint64_t number, size_t digits)
{
    text_put(text, "%n", key);
    text->used += digits;
    for (size_t i = 1; i <= digits; i++, number /= 10)
        text->bytes[text->used - i] = (char)('0' + number % 10);
}

bool calls_write(size_t card, uint64_t minor, const struct calls *calls)
{
    char line[LINE_BYTES];
    struct text text = {line, sizeof line, 0};
    put_field(&text, "minor=", minor, MINOR_DIGITS);
    put_field(&text, " calls=", calls->calls, DIGITS);
    put_field(&text, " launches=", calls->launches, DIGITS);
    put_field(&text, " allocations=", calls->allocations, DIGITS);
    put_field(&text, " bytes_allocated=", calls->bytes_allocated, DIGITS);
    put_field(&text, " to_device=", calls->to_device, DIGITS);
    put_field(&text, " from_device=", calls->from_device, DIGITS);
    put_field(&text, " error=", calls->error, MINOR_DIGITS);
    put_field(&text, " races=", calls->races, MINOR_DIGITS);
    text_put(&text, "\n");
    long put = system_call(CALL_WRITE_AT, counted, system_pointer(line), (long)text.used, (long)(card * text.used), 0);
    return put == (long)text.used;
}

bool calls_begin(const char *name, const struct cards *cards)
{
    const struct calls none = {0};
    counted = (int)system_open(name, OPEN_WRITE | OPEN_CREATE | OPEN_TRUNCATE | OPEN_NOFOLLOW);
    for (size_t i = 0; i < cards->count; i++)
        if (counted < 0 || !calls_write(i, cards->card[i].minor, &none))
            return false;
    return true;
}
