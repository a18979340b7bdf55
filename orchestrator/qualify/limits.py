"""What ends a lane from outside its steps: time, money, a person.

Knows prices and when things began; must not know what is running. The earliest limit counts. Time goes by a
clock that counts a suspended machine's sleep too, since pods bill on meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from orchestrator.errors import Label
from orchestrator.spec.lane import Limits as LaneLimits
from orchestrator.spec.pods import PodsSpec
from orchestrator.spec.units import Money

SLICE_S = 0.2  # a limit acts within 2 s: nothing waits longer than this without a look
PARTING_S = 5.0  # for nodes that are out of reach while a lane is being stopped
_HOUR_S = 3600


class StopLaneError(Exception):
    """A limit or a person ended the lane: nothing more is started, what is there is collected and sealed."""

    def __init__(self, reason: str, label: Label | None = None) -> None:
        super().__init__(f"{label}: {reason}" if label else reason)


@dataclass(frozen=True)
class Limit:
    """One limit.

    Attributes:
        label: what it is refused as.
        what: of whom it is, and how much: `the lane's duration limit, 60 s`.
        began: since when it counts.
        allowed_s: seconds from then on.
    """

    label: Label
    what: str
    began: datetime
    allowed_s: float

    @property
    def ends(self) -> datetime:
        """When it is reached; the end of all days if it lies beyond."""
        try:
            return self.began + timedelta(seconds=self.allowed_s)
        except OverflowError:
            return datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Billing:
    """What a rental costs.

    Attributes:
        rates: node -> its price per hour, as people read it, with the provider's name for the pod.
        hourly: of all nodes together.
        started: when the rental began.
        cap: what it may cost at most.
    """

    rates: Mapping[str, str]
    hourly: Money
    started: datetime
    cap: Money

    @classmethod
    def of(cls, pods: PodsSpec) -> Billing | None:
        """Of the priced nodes; None if no node has a price."""
        priced = {name: node for name, node in pods.nodes.items() if node.price is not None}
        if not priced or pods.started is None or pods.cap is None:
            return None
        prices = [node.price.amount for node in priced.values() if node.price is not None]
        return cls(
            rates={
                name: f"{node.price}/h" + (f", pod {node.pod}" if node.pod else "")
                for name, node in priced.items()
            },
            hourly=Money(sum(prices, Decimal(0)), pods.cap.currency),
            started=datetime.fromisoformat(pods.started),
            cap=pods.cap,
        )

    def lasts_s(self, money: Money) -> float:
        """Seconds for which an amount pays all nodes."""
        if self.hourly.amount == 0:
            return float("inf")
        return float(money.amount / self.hourly.amount * _HOUR_S)

    def __str__(self) -> str:
        return "; ".join(f"{name} ({rate})" for name, rate in self.rates.items())


def declared(lane: LaneLimits, began: datetime, billing: Billing | None) -> tuple[Limit, ...]:
    """The limits that hold for a lane that began then, on what is billed so."""
    found = []
    if lane.duration_s is not None:
        what = f"the lane's duration limit, {lane.duration_s:g} s"
        found.append(Limit(Label.LIMIT_DURATION, what, began, lane.duration_s))
    if billing is None:
        return tuple(found)
    if lane.spend is not None:
        what = f"the lane's spend limit, {lane.spend} at {billing.hourly}/h"
        found.append(Limit(Label.LIMIT_SPEND, what, began, billing.lasts_s(lane.spend)))
    what = f"the rental's cap, {billing.cap} at {billing.hourly}/h"
    found.append(Limit(Label.LIMIT_SPEND, what, billing.started, billing.lasts_s(billing.cap)))
    return tuple(found)


def _ticks() -> float:
    """Seconds that go on while the machine sleeps, where the system has such a clock."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Limits:
    """What is still allowed.

    Attributes:
        limits: all that hold; the earliest counts.
        billing: whose pods a message names.
        stop_requested: set by a signal handler; the reason.
        ticks: seconds of a clock that only goes on.
        now: wall time, read once: a clock that is set meanwhile changes nothing.
        is_armed: whether they act; not while a lane is taken up again or cleared away, which has to be done.
    """

    limits: tuple[Limit, ...] = ()
    billing: Billing | None = None
    stop_requested: str = ""
    ticks: Callable[[], float] = _ticks
    now: Callable[[], datetime] = _now
    is_armed: bool = True
    _first: Limit | None = field(init=False, default=None)
    _deadline: float = field(init=False, default=float("inf"))
    _parting: float | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        now, ticks = self.now(), self.ticks()
        for limit in self.limits:
            # a clock that was set back, or a rental that begins in the future, does not lengthen a limit
            left = limit.allowed_s - max(0.0, (now - limit.began).total_seconds())
            if self._first is None or ticks + left < self._deadline:
                self._first, self._deadline = limit, ticks + left

    def check(self) -> None:
        """Raises StopLaneError if the lane is to end now; a lane that is being ended is let do so."""
        if self._parting is not None or not self.is_armed:
            return
        if self.stop_requested:
            raise StopLaneError(self.stop_requested)
        if self._first is not None and self.ticks() >= self._deadline:
            said = f"{self._first.what}, is reached (got all of it, expected less)"
            bills = f"; still billing: {self.billing}" if self.billing else ""
            raise StopLaneError(said + bills, self._first.label)

    def wait(self, seconds: float) -> None:
        """Sleeps, looking at the limits; while a lane is being ended, nobody is waited for for long.

        Raises:
            StopLaneError: the lane is to end now, or has been ending for long enough.
        """
        until = self.ticks() + seconds
        while True:
            self.check()
            now = self.ticks()
            if self._parting is not None and now >= self._parting:
                raise StopLaneError("the lane is being stopped")
            if self._parting is None and self.stop_requested:
                raise StopLaneError(self.stop_requested)
            if now >= until:
                return
            time.sleep(min(SLICE_S, max(0.0, until - now)))

    def part(self) -> None:
        """From here on the lane is being ended: `check` is content, and waiting is bounded."""
        if self._parting is None:
            self._parting = self.ticks() + PARTING_S

    @property
    def parting(self) -> bool:
        """Whether the lane is being ended."""
        return self._parting is not None

    def __str__(self) -> str:
        """What is allowed, for a person; empty if nothing limits the lane."""
        said = "; or ".join(f"{limit.ends:%Y-%m-%d %H:%M:%S} UTC ({limit.what})" for limit in self.limits)
        first = ", whichever is first" if len(self.limits) > 1 else ""
        return f"stops at {said}{first}" if said else ""
