"""`orch: lane/v1`: an ordered list of qualification steps over a run, with its deadlines and limits.

Knows the steps by name and order; must not know what a step does. Lanes never name pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from orchestrator.errors import Label, Refusal
from orchestrator.spec.document import Document
from orchestrator.spec.faults import MANY, FileModel, TextLike, one_of, suggest
from orchestrator.spec.nodesets import MAX_NAMES
from orchestrator.spec.places import visible
from orchestrator.spec.program import CommandRunSpec
from orchestrator.spec.run import RunSpec
from orchestrator.spec.system import Title
from orchestrator.spec.units import Amount, Milliseconds, Money

STEPS = ("preflight", "build", "refusals", "uninterrupted", "split", "host-shadow", "evaluate", "record")
INDISPENSABLE = ("preflight", "build", "record")
OMITTABLE = tuple(step for step in STEPS if step not in INDISPENSABLE)
MAX_UPDATES = 1 << 31
UNREACHABLE_MS = 120_000

NativeTarget = Literal["x86_64-linux", "aarch64-linux"]

Gate = Annotated[
    str, TextLike(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", "lower-case letters and digits in words joined by -")
]


class DeadlinesModel(FileModel):
    """How long roles wait before they refuse."""

    connect: Milliseconds = Field(description="for a peer to connect, such as 10s")
    round: Milliseconds = Field(description="for one round, such as 5s")
    run: Milliseconds = Field(description="for a whole start, such as 5m")
    unreachable: Milliseconds | None = Field(
        default=None, description="how long a node may be out of reach before it counts as lost; else 2m"
    )


class LimitsModel(FileModel):
    """What a lane may use up."""

    duration: Milliseconds | None = Field(default=None, description="time for the whole lane, such as 20m")
    spend: Amount | None = Field(default=None, description="money for the whole lane, such as 2.00 USD")


class QualificationFile(FileModel):
    """What a lane says whatever it runs."""

    orch: Literal["lane/v1"] = Field(description="the kind of this file")
    name: Title = Field(description="what people call it")
    updates: Annotated[int, Field(ge=2, le=MAX_UPDATES)] = Field(description="how many updates a run makes")
    split: Annotated[int, Field(ge=1, le=MAX_UPDATES)] = Field(
        description="after how many updates the split run is stopped and resumed"
    )
    swap: Mapping[NativeTarget, NativeTarget] = Field(
        default={}, description="target to the one that its roles are made for when the split run is resumed"
    )
    deadlines: DeadlinesModel = Field(description="how long roles wait")
    limits: LimitsModel = Field(default=LimitsModel(), description="what a lane may use up")


class LaneFile(QualificationFile):
    """Qualification steps over a run."""

    gate: Gate | None = Field(default=None, description="ORCH_<GATE>_CONFIG may name a pods file")
    run: str = Field(min_length=1, description="the run's file, beside this one unless it begins with /")
    omit: Mapping[str, Annotated[str, Field(min_length=1)]] = Field(
        default={}, description="steps to leave out, each with a reason"
    )


@dataclass(frozen=True)
class Deadlines:
    """How long is waited, in milliseconds: to connect, for a round, for a whole start, for a lost node."""

    connect_ms: int
    round_ms: int
    run_ms: int
    unreachable_ms: int


@dataclass(frozen=True)
class Limits:
    """What a lane may use up: seconds and money; None for no limit."""

    duration_s: float | None
    spend: Money | None


@dataclass(frozen=True)
class LaneSpec:
    """A lane as declared: steps over `run`, `updates` updates, split after `split` (0 < split < updates).

    `swap`: target -> what its roles are made for instead when the split run is resumed; empty for no change.
    """

    path: Path
    document: Document = field(repr=False, compare=False)
    name: str
    gate: str | None
    run: RunSpec | CommandRunSpec
    updates: int
    split: int
    omit: Mapping[str, str]
    swap: Mapping[str, str]
    deadlines: Deadlines
    limits: Limits


def meaning(document: Document) -> tuple[Refusal, ...]:
    """Refuses what no single value shows: a split outside the run, unknown steps."""
    refusals = [*split_refusals(document)]
    omit = document.get("omit")
    for step in omit if isinstance(omit, dict) else ():
        if step not in STEPS:
            message = f"there is no such step (got `{visible(step)}`, expected {one_of(STEPS)})"
            hint = suggest(step, STEPS) if len(refusals) < MANY else ""
            refusals.append(document.at(Label.NAME_UNKNOWN, message, ("omit", step), on_key=True, hint=hint))
        elif step in INDISPENSABLE:
            message = f"{step} cannot be left out (got it, expected {one_of(OMITTABLE)})"
            refusals.append(document.at(Label.VALUE_CHOICE, message, ("omit", step), on_key=True))
    if isinstance(omit, dict) and "split" in omit and "evaluate" not in omit:
        message = (
            "evaluate needs the checkpoint of split (got split left out alone, expected both or neither)"
        )
        refusals.append(document.at(Label.VALUE_CHOICE, message, ("omit", "split"), on_key=True))
    return tuple(refusals)


def roles_fit(document: Document, roles: int) -> Iterator[Refusal]:
    """Refuses a run of more roles than a lane starts."""
    if roles > MAX_NAMES:
        message = f"the run has too many roles for a lane (got {roles}, expected at most {MAX_NAMES})"
        hint = "`orch plan` of the run itself says what each of its roles would do"
        yield document.at(Label.VALUE_RANGE, message, ("run",), hint=hint)


def swap_fits(document: Document, targets: Iterable[str]) -> Iterator[Refusal]:
    """Refuses a swap of a target that no role of the run is made for."""
    known = tuple(dict.fromkeys(targets))
    swap = document.get("swap")
    for target in swap if isinstance(swap, dict) else ():
        if target not in known:
            message = f"no role is made for this target (got `{visible(target)}`, expected {one_of(known)})"
            yield document.at(Label.VALUE_CHOICE, message, ("swap", target), on_key=True)


def gate_variable(gate: str) -> str:
    """Gives the variable that may name the pods file of a gate's lanes."""
    return f"ORCH_{gate.upper().replace('-', '_')}_CONFIG"


def split_refusals(document: Document) -> Iterator[Refusal]:
    """Refuses a split that is not inside the run."""
    updates, split = document.get("updates"), document.get("split")
    if type(updates) is int and type(split) is int and split >= updates > 1:
        message = f"the split is not inside the run (got {split}, expected less than {updates} updates)"
        yield document.at(Label.VALUE_RANGE, message, ("split",))


def limits(model: LimitsModel) -> Limits:
    """Gives what a lane may use up, typed."""
    return Limits(None if model.duration is None else model.duration / 1000, model.spend)


def build(document: Document, model: LaneFile, run: RunSpec | CommandRunSpec) -> LaneSpec:
    """Gives the typed lane of a file that nothing is wrong with."""
    return LaneSpec(
        path=document.path,
        document=document,
        name=model.name,
        gate=model.gate,
        run=run,
        updates=model.updates,
        split=model.split,
        omit=dict(model.omit),
        swap={str(each): other for each, other in model.swap.items()},
        deadlines=Deadlines(
            model.deadlines.connect,
            model.deadlines.round,
            model.deadlines.run,
            model.deadlines.unreachable or UNREACHABLE_MS,
        ),
        limits=limits(model.limits),
    )
