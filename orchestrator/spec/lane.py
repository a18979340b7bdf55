"""`orch: lane/v1`: an ordered list of qualification steps over a run, with its deadlines and limits.

Knows the steps by name and order; must not know what a step does. Lanes never name pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

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

if TYPE_CHECKING:
    from orchestrator.spec.device import DeviceSpec

STEPS = ("preflight", "build", "refusals", "uninterrupted", "split", "host-shadow", "evaluate", "record")
INDISPENSABLE = ("preflight", "build", "record")
OMITTABLE = tuple(step for step in STEPS if step not in INDISPENSABLE)
MAX_UPDATES = 1 << 31
UNREACHABLE_MS = 120_000

NativeTarget = Literal["x86_64-linux", "aarch64-linux"]
DriverDemand = Literal["any", "established"]
"""Any release of a card's driver, or one that the profile was established for."""

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
    deadlines: DeadlinesModel = Field(description="how long roles wait")
    limits: LimitsModel = Field(default=LimitsModel(), description="what a lane may use up")


class LaneFile(QualificationFile):
    """Qualification steps over a run."""

    gate: Gate | None = Field(default=None, description="ORCH_<GATE>_CONFIG may name a pods file")
    run: str = Field(min_length=1, description="the run's file, beside this one unless it begins with /")
    swap: Mapping[str, str] = Field(
        default={},
        description="target, or device profile, to that of its roles when the split run is resumed",
    )
    driver: DriverDemand = Field(
        default="any", description="which driver a device role's card may have: any, or an established one"
    )
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

    `swap`: target or name of a device profile -> what its roles are made for instead when the split run is
    resumed; empty for no change. `profiles`: of the cards that it names so.
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
    profiles: Mapping[str, DeviceSpec]
    deadlines: Deadlines
    limits: Limits
    driver: DriverDemand = "any"


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


def swap_fits(document: Document, made_for: Iterable[str]) -> Iterator[Refusal]:
    """Refuses a swap of a target or device that no role of the run is made for, and of a target by none."""
    known, targets = tuple(dict.fromkeys(made_for)), get_args(NativeTarget)
    swap = document.get("swap")
    for before, after in swap.items() if isinstance(swap, dict) else ():
        if before not in known:
            message = f"no role is made for this (got `{visible(before)}`, expected {one_of(known)})"
            yield document.at(Label.VALUE_CHOICE, message, ("swap", before), on_key=True)
        elif before in targets and isinstance(after, str) and after not in targets:
            message = f"there is no such target (got `{visible(after)}`, expected {one_of(targets)})"
            yield document.at(Label.VALUE_CHOICE, message, ("swap", before), hint=suggest(after, targets))


def swapped_devices(document: Document) -> tuple[str, ...]:
    """Gives the targets and device profiles of a swap's left side whose right side is a device profile."""
    swap = document.get("swap")
    return (
        tuple(each for each in swap if each not in get_args(NativeTarget)) if isinstance(swap, dict) else ()
    )


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


def build(
    document: Document,
    model: LaneFile,
    run: RunSpec | CommandRunSpec,
    profiles: Mapping[str, DeviceSpec],
) -> LaneSpec:
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
        swap=dict(model.swap),
        profiles=profiles,
        deadlines=Deadlines(
            model.deadlines.connect,
            model.deadlines.round,
            model.deadlines.run,
            model.deadlines.unreachable or UNREACHABLE_MS,
        ),
        limits=limits(model.limits),
        driver=model.driver,
    )
