"""What ends a lane from outside, by clocks that the tests hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from orchestrator.errors import Label
from orchestrator.qualify.limits import Billing, Limits, StopLaneError, declared
from orchestrator.spec.lane import Limits as LaneLimits
from orchestrator.spec.units import Money

BEGAN = datetime(2026, 11, 29, 9, 0, tzinfo=UTC)


def usd(amount: str) -> Money:
    return Money(Decimal(amount), "USD")


@dataclass
class Clock:
    """Ticks that a test moves, and a wall clock that may go its own way."""

    seconds: float = 1000.0
    wall: datetime = field(default=BEGAN)

    def go(self, seconds: float) -> None:
        self.seconds += seconds
        self.wall += timedelta(seconds=seconds)

    def limits(self, lane: LaneLimits, billing: Billing | None = None, began: datetime = BEGAN) -> Limits:
        return Limits(
            declared(lane, began, billing), billing, ticks=lambda: self.seconds, now=lambda: self.wall
        )


def rented(cap: str = "1.00", started: datetime = BEGAN) -> Billing:
    rates = {"a": "30 USD/h, pod x1", "b": "6 USD/h"}
    return Billing(rates, hourly=usd("36"), started=started, cap=usd(cap))


def stopped_after(clock: Clock, limits: Limits, *, most_s: int = 10_000) -> tuple[int, str]:
    for second in range(most_s):
        try:
            limits.check()
        except StopLaneError as stop:
            return second, str(stop)
        clock.go(1)
    return most_s, "never"


def test_nothing_is_limited_where_nothing_is_said() -> None:
    clock = Clock()
    limits = clock.limits(LaneLimits(None, None))
    assert str(limits) == ""
    assert stopped_after(clock, limits) == (10_000, "never")


def test_duration() -> None:
    clock = Clock()
    seconds, said = stopped_after(clock, clock.limits(LaneLimits(60.0, None)))
    assert seconds == 60
    assert said.startswith(f"{Label.LIMIT_DURATION}: the lane's duration limit, 60 s, is reached")


def test_a_resumed_lane_has_what_is_left() -> None:
    clock = Clock()
    clock.go(45)
    assert stopped_after(clock, clock.limits(LaneLimits(60.0, None)))[0] == 15


def test_a_wall_clock_that_was_set_back_lengthens_nothing() -> None:
    clock = Clock(wall=BEGAN - timedelta(hours=1))
    assert stopped_after(clock, clock.limits(LaneLimits(60.0, None)))[0] == 60


def test_a_wall_clock_that_is_set_meanwhile_changes_nothing() -> None:
    clock = Clock()
    limits = clock.limits(LaneLimits(60.0, None))
    clock.wall -= timedelta(days=1)
    assert stopped_after(clock, limits)[0] == 60


@pytest.mark.parametrize(
    ("spend", "cap", "rented_for_s", "seconds", "whose"),
    [
        ("0.50", "1.00", 0, 50, "the lane's spend limit, 0.50 USD"),
        ("2.00", "1.00", 0, 100, "the rental's cap, 1.00 USD"),
        ("0.50", "1.00", 70, 30, "the rental's cap, 1.00 USD"),
        ("0.50", "1.00", 500, 0, "the rental's cap, 1.00 USD"),
    ],
)
def test_the_earliest_limit_stops_the_lane(
    spend: str, cap: str, rented_for_s: int, seconds: int, whose: str
) -> None:
    """36 USD an hour is a cent a second; the rental counts from its own beginning."""
    clock = Clock()
    billing = rented(cap, BEGAN - timedelta(seconds=rented_for_s))
    passed, said = stopped_after(clock, clock.limits(LaneLimits(3600.0, usd(spend)), billing))
    assert passed == seconds
    assert said.startswith(f"{Label.LIMIT_SPEND}: {whose} at 36 USD/h")
    assert "still billing: a (30 USD/h, pod x1); b (6 USD/h)" in said


def test_a_lane_says_beforehand_when_it_stops() -> None:
    said = str(Clock().limits(LaneLimits(60.0, usd("2.00")), rented()))
    assert said.startswith("stops at 2026-11-29 09:01:00 UTC (the lane's duration limit, 60 s); or ")
    assert "09:03:20 UTC (the lane's spend limit, 2.00 USD at 36 USD/h)" in said
    assert said.endswith("whichever is first")


def test_a_price_of_nothing_limits_nothing() -> None:
    billing = Billing({"a": "0 USD/h"}, hourly=usd("0"), started=BEGAN, cap=usd("1"))
    clock = Clock()
    limits = clock.limits(LaneLimits(None, usd("1")), billing)
    assert "9999" in str(limits)
    assert stopped_after(clock, limits)[1] == "never"


def test_a_lane_that_is_being_stopped_is_let_do_so_and_waits_for_nobody_long() -> None:
    clock = Clock()
    limits = clock.limits(LaneLimits(1.0, None))
    clock.go(2)
    with pytest.raises(StopLaneError):
        limits.wait(0.0)
    limits.part()
    limits.check()
    limits.wait(0.0)
    clock.go(60)
    limits.check()
    with pytest.raises(StopLaneError):
        limits.wait(0.0)


def test_what_has_to_be_done_is_stopped_by_a_person_only() -> None:
    clock = Clock()
    limits = clock.limits(LaneLimits(1.0, None))
    limits.is_armed = False
    clock.go(2)
    limits.check()
    limits.wait(0.0)
    limits.stop_requested = "interrupted"
    with pytest.raises(StopLaneError, match="interrupted"):
        limits.wait(0.0)
