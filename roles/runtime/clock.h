/* Time, and the deadlines that a role enforces on itself, so that nobody need be alive to stop it. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>

struct deadline {
    int64_t at_ms;     /* on the monotonic clock */
    const char *label; /* what a role says that is past it */
};

int64_t clock_monotonic_ms(void);
int64_t clock_wall_ms(void);

/* From now on no deadline ends later than `run_ms` from now; what ends there says `run-deadline`. */
void clock_bound_run(uint64_t run_ms);

struct deadline clock_deadline(int64_t from_ms, uint64_t span_ms, const char *label);

/* Milliseconds left, at least 1; refuses by the deadline's label if there are none. */
int64_t clock_left_ms(struct deadline deadline);

/* Refuses if the whole run is late. */
void clock_check_run(void);

#endif
