#include "clock.h"

#include "refuse.h"
#include "system.h"

static struct deadline whole_run = {INT64_MAX, "run-deadline"};

static int64_t read_ms(long clock)
{
    struct moment now = {0, 0};
    (void)system_call(CALL_CLOCK, clock, system_pointer(&now), 0, 0, 0);
    return now.seconds * 1000 + now.nanoseconds / 1000000;
}

int64_t clock_monotonic_ms(void)
{
    return read_ms(1);
}

int64_t clock_wall_ms(void)
{
    return read_ms(0);
}

void clock_bound_run(uint64_t run_ms)
{
    whole_run = clock_deadline(clock_monotonic_ms(), run_ms, whole_run.label);
}

struct deadline clock_deadline(int64_t from_ms, uint64_t span_ms, const char *label)
{
    int64_t at = from_ms + (int64_t)span_ms;
    return at < whole_run.at_ms ? (struct deadline){at, label} : whole_run;
}

int64_t clock_left_ms(struct deadline deadline)
{
    int64_t left = deadline.at_ms - clock_monotonic_ms();
    if (left <= 0)
        refuse(deadline.label);
    return left;
}

void clock_check_run(void)
{
    (void)clock_left_ms(whole_run);
}
