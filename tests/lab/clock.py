"""A controller whose wall clock is off: the C library answers so many seconds off when asked for the time.

Monotonic clocks are left alone, as on a machine whose clock was set wrong.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

SOURCE = r"""
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void) { const char *said = getenv("LAB_CLOCK_OFFSET_S"); return said ? atol(said) : 0; }

int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = (int)syscall(SYS_clock_gettime, clock, at);
    if (!failed && clock == CLOCK_REALTIME) at->tv_sec += offset();
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    (void)zone;
    struct timespec now;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""


def clock_off(folder: Path, seconds: int) -> Mapping[str, str]:
    """Gives the environment that sets a program's clock off; the library that does it goes into `folder`."""
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(SOURCE)
    compiler = (sys.executable, "-m", "ziglang", "cc")
    subprocess.run(
        [*compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source)],
        check=True,
        capture_output=True,
    )
    return {"LD_PRELOAD": str(library), "LAB_CLOCK_OFFSET_S": str(seconds)}
