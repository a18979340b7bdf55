"""What queries give, as frozen values; their fields are those of the commands' JSON. Knows no database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tracker.programme import Proof


@dataclass(frozen=True)
class RunLine:
    """A run as lists show it. `omitted` is step to reason; None where no seal says what ran."""

    run_id: str
    lane: str
    state: str
    verdict: str | None
    grade: str | None
    started: str
    ended: str | None
    omitted: Mapping[str, str] | None
    seal: str | None


@dataclass(frozen=True)
class Milestone:
    """A milestone and how many of its items have each status."""

    id: str
    title: str
    planned: int
    in_progress: int
    implemented: int
    verified: int


@dataclass(frozen=True)
class RunCount:
    """How many runs have one state and grade."""

    state: str
    grade: str | None
    runs: int


@dataclass(frozen=True)
class SeveralPlans:
    """An item whose evidence that counts is of more than one plan: its proof does not say which is meant."""

    item: str
    plans: int


@dataclass(frozen=True)
class Status:
    """The programme at a glance; `last` newest first."""

    milestones: tuple[Milestone, ...]
    runs: tuple[RunCount, ...]
    last: tuple[RunLine, ...]
    several_plans: tuple[SeveralPlans, ...]


@dataclass(frozen=True)
class ItemLine:
    """An item, its status, and what it asks for."""

    id: str
    title: str
    milestone: str
    status: str
    listed: bool
    needs: tuple[str, ...]
    proof: Proof | None


@dataclass(frozen=True)
class EvidenceLine:
    """A run attached to an item. `counts`: it meets the item's proof as it stands, and is not withdrawn."""

    item: str
    run_id: str
    lane: str
    grade: str
    plan: str
    system: str
    seal: str
    recorded: str
    counts: bool


@dataclass(frozen=True)
class Measurement:
    """A value about a run; the highest revision under a name is the one that holds."""

    name: str
    revision: int
    value: float
    unit: str
    source: str


@dataclass(frozen=True)
class Note:
    """A note on a run; `effect` is `note`, `withdraw` or `reinstate`."""

    revision: int
    effect: str
    text: str
    recorded: str


@dataclass(frozen=True)
class Card:
    """A card as bound to a role."""

    role: str
    node: str
    product: str
    uuid: str


@dataclass(frozen=True)
class RunDetail:
    """Everything known of one run.

    Attributes:
        judged: the version of the judge that recomputed it, None where it left no seal.
        bundle: the last place where its bundle was seen.
    """

    run: RunLine
    plan: str
    system: str
    head: str | None
    records: int | None
    judged: str | None
    bundle: str | None
    devices: tuple[Card, ...]
    evidence: tuple[EvidenceLine, ...]
    measurements: tuple[Measurement, ...]
    notes: tuple[Note, ...]
