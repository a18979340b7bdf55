#include "facts.h"

#include "clock.h"

static void put_two_digits(struct text *text, uint64_t number)
{
    text_put(text, "%u%u", number / 10, number % 10);
}

/* In Universal Time, as C's asctime has it: days of 400 years from the first of March of the year 0. */
static void put_time(struct text *text)
{
    static const char *const weekdays[] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};
    static const char *const months[] = {"Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan",
                                         "Feb"};
    enum { DAYS_BEFORE_1970 = 719468, DAYS_OF_400_YEARS = 146097 };
    uint64_t seconds = (uint64_t)clock_wall_ms() / 1000;
    uint64_t days = seconds / 86400 + DAYS_BEFORE_1970;
    uint64_t day = days % DAYS_OF_400_YEARS;
    uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    uint64_t of_year = day - (365 * year + year / 4 - year / 100);
    uint64_t month = (5 * of_year + 2) / 153;
    text_put(text, "%n %n ", weekdays[seconds / 86400 % 7], months[month]);
    put_two_digits(text, of_year - (153 * month + 2) / 5 + 1);
    text_put(text, " ");
    put_two_digits(text, seconds / 3600 % 24);
    text_put(text, ":");
    put_two_digits(text, seconds / 60 % 60);
    text_put(text, ":");
    put_two_digits(text, seconds % 60);
    text_put(text, " %u", year + days / DAYS_OF_400_YEARS * 400 + (month >= 10));
}

static uint64_t number_of(enum fact fact, const struct card *card)
{
    switch (fact) {
    case FACT_MINOR:
        return card->minor;
    case FACT_TOTAL:
        return card->memory_mib;
    case FACT_RESERVED:
        return card->reserved_mib;
    case FACT_USED:
        return card->used_mib;
    case FACT_FREE:
        return card->memory_mib - card->reserved_mib - card->used_mib;
    case FACT_UTILIZATION:
        return card->utilization;
    case FACT_PROCESS:
        return card->process;
    case FACT_PROCESS_USED:
        return card->process_mib;
    default:
        return 0;
    }
}

static const char *word_of(enum fact fact, const struct card *card)
{
    switch (fact) {
    case FACT_GROUP:
        return "";
    case FACT_NONE:
        return "None";
    case FACT_UNSUPPORTED:
        return "N/A";
    case FACT_DISABLED:
        return "Disabled";
    case FACT_DEFAULT:
        return "Default";
    case FACT_PERFORMANCE:
        return "P8";
    case FACT_BRAND:
        return "orch's stand-in";
    case FACT_PRODUCT:
        return card->product;
    case FACT_UUID:
        return card->uuid_text;
    case FACT_MIG:
        return card->mig ? "Enabled" : "N/A";
    case FACT_RESET:
        return card->reset ? "Yes" : "No";
    case FACT_RECOVERY:
        return card->reset ? "Reset" : "None";
    case FACT_DRIVER:
        return card->driver;
    case FACT_PROCESS_KIND:
        return "C";
    case FACT_PROCESS_NAME:
        return "/simulated/by/orch";
    default:
        return NULL;
    }
}

void facts_put(struct text *text, enum fact fact, const struct cards *cards, size_t index)
{
    const struct card *card = &cards->card[index];
    const char *word = word_of(fact, card);
    uint64_t cuda = cards_release(card).cuda;
    if (word) {
        text_put(text, "%n", word);
        return;
    }
    switch (fact) {
    case FACT_INDEX:
        text_put(text, "%u", index);
        break;
    case FACT_COUNT:
        text_put(text, "%u", cards->count);
        break;
    case FACT_ADDRESS:
        cards_put_address(text, card, 8);
        break;
    case FACT_BUS:
        cards_put_hex(text, card->bus, 2);
        break;
    case FACT_DEVICE:
        cards_put_hex(text, card->device, 2);
        break;
    case FACT_DOMAIN:
        cards_put_hex(text, card->domain, 4);
        break;
    case FACT_CUDA:
        text_put(text, "%u.%u", cuda / 1000, cuda % 1000 / 10);
        break;
    case FACT_CAPABILITY:
        text_put(text, "%u.%u", card->major, card->lesser);
        break;
    case FACT_TIME:
        put_time(text);
        break;
    default:
        text_put(text, "%u", number_of(fact, card));
    }
}

const char *facts_unit(enum fact fact)
{
    switch (fact) {
    case FACT_TOTAL:
    case FACT_RESERVED:
    case FACT_USED:
    case FACT_FREE:
    case FACT_PROCESS_USED:
        return "MiB";
    case FACT_UTILIZATION:
    case FACT_MEMORY_UTILIZATION:
        return "%";
    default:
        return "";
    }
}
