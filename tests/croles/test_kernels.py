"""Random systems of every kind: their kernels, done by the stand-in, leave the reference's bits."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from role_bench import CONTENT
from role_plans import STAR_WORDS, WIDTH, Case, among
from standin_bench import CARD, Driver
from standin_learner import check

from orchestrator.build.compile import TARGETS, Made, build_programs
from orchestrator.build.standin import StandIn
from orchestrator.oracle.reference import NonFiniteError
from orchestrator.plan.derive import derive
from orchestrator.plan.model import Field, System
from orchestrator.plan.ownership import Ownership
from orchestrator.plan.tree import (
    Assignment,
    Binary,
    Dot,
    Expression,
    Negate,
    Number,
    SquareRoot,
    Sum,
    Word,
)
from orchestrator.spec.read import read_device, read_native_run

APART = Ownership("partitioned", "partitioned", "partitioned")
OWNERSHIPS = (
    APART,
    Ownership("replicated", "partitioned", "replicated"),
    Ownership("partitioned", "replicated", "partitioned", (range(1), range(1, 3), range(0))),
)
# words of either width
NUMBERS = (0.5, -0.375, 0.125, 1.0 + 2**-23, -0.0, 1.0, 2.0**-149)
ONE = Number(1.0)


def number(draw: st.DrawFn, limit: int) -> int:
    return draw(st.integers(0, limit - 1))


def one_of(draw: st.DrawFn, values: list[str]) -> str:
    return values[number(draw, len(values))]


def times(left: Expression, right: Expression) -> Binary:
    return Binary("*", left, right)


@dataclass
class Scope:
    """Names that a program may read by now, with their sizes; of those apart a word is its owner's alone."""

    draw: st.DrawFn
    sizes: dict[str, int]
    apart: set[str] = field(default_factory=set)
    made: int = 0

    def leaf(self, size: int, target: str, *, shared: bool) -> Expression:
        """Of a word of a statement of `size` words; a shared one reads nothing that is anybody's own."""
        stepping = [name for name, each in self.sizes.items() if each == size]
        single = [name for name, each in self.sizes.items() if name not in self.apart and name != target]
        if shared:
            stepping = [name for name in stepping if name not in self.apart]
        where = None if size > 1 else 0
        choice = number(self.draw, 6)
        if choice < 3 and stepping:
            return Word(one_of(self.draw, stepping), where)
        if choice < 5 and single:
            name = one_of(self.draw, single)
            other = one_of(self.draw, [each for each in single if self.sizes[each] == self.sizes[name]])
            wholes = (Sum(name, self.sizes[name]), Dot(name, other, self.sizes[name]))
            return (*wholes, *(Word(name, number(self.draw, self.sizes[name])) for _ in range(2)))[
                number(self.draw, 4)
            ]
        return Number(NUMBERS[number(self.draw, len(NUMBERS))])

    def expression(self, size: int, target: str, depth: int = 3, *, shared: bool = False) -> Expression:
        if depth == 0 or number(self.draw, 4) == 0:
            return self.leaf(size, target, shared=shared)
        left, right = (self.expression(size, target, depth - 1, shared=shared) for _ in range(2))
        bounded = Binary("+", ONE, times(left, left))
        return (
            Negate(left),
            SquareRoot(bounded),
            Binary("/", right, bounded),
            times(left, right),
            Binary("+", left, right),
            Binary("-", left, right),
        )[number(self.draw, 6)]

    def local(self, size: int, *, shared: bool = False) -> Assignment:
        """A statement that assigns a fresh temporary."""
        self.made += 1
        name = f"t{self.made}"
        made = Assignment(name, size, self.expression(size, name, shared=shared), local=True)
        self.sizes[name] = size
        if self.apart and not shared:
            self.apart.add(name)
        return made

    def changes(self, fields: Mapping[str, bool]) -> tuple[Assignment, ...]:
        """Statements that change fields (shared or not), some twice, with temporaries in between."""
        program = []
        for _ in range(2 + number(self.draw, 5)):
            name = one_of(self.draw, list(fields))
            size, shared = self.sizes[name], fields[name]
            if number(self.draw, 2):
                one = number(self.draw, 2) and not self.apart
                program.append(self.local(1 if one else size, shared=shared))
            value = self.expression(size, name, shared=shared)
            old = Word(name, None if size > 1 else 0)
            program.append(Assignment(name, size, Binary("-", times(Number(0.5), old), value), local=False))
        return tuple(program)


FIELDS = (Field("w", WIDTH, (0.25, 0.25, -0.5)), Field("b", 1, (0.125,)))
STATE = (
    Field("p", 1, (1.0,), shared=True),
    Field("q", WIDTH, (0.5, 0.75, -1.0), shared=True),
    Field("v", WIDTH, (0.0, -0.0, 2.0)),
    Field("c", 1, (0.5,)),
)
SAMPLE = (Field("x", WIDTH), Field("y", 1))
SIZES = {each.name: each.size for each in FIELDS + STATE + SAMPLE}
SHARED = {each.name: each.shared for each in FIELDS + STATE}


def sizes(*names: str) -> dict[str, int]:
    return {name: SIZES[name] for name in names}


def system(kind: str, numerics: str, **programs: object) -> System:
    made = System(
        name="random",
        kind=kind,
        parameters=FIELDS,
        state=STATE,
        sample=SAMPLE,
        contributions=(),
        contribution=(),
        update=(),
        evaluate=(),
        results=("loss",),
        rate=0.25,
        rows=len(STAR_WORDS) // (WIDTH + 1),
        samples_sha256="",
        numerics=numerics,
    )
    return replace(made, **programs)


def result(scope: Scope, name: str = "loss") -> Assignment:
    return Assignment(name, 1, scope.expression(1, name, shared=bool(scope.apart)), local=False)


@st.composite
def by_rows(draw: st.DrawFn, *, apart: bool, numerics: str = "binary64-ordered") -> System:
    sample = Scope(draw, sizes("w", "b", "x", "y"))
    contribution = [sample.local((1, WIDTH)[number(draw, 2)]) for _ in range(1 + number(draw, 3))]
    summed = [Field(each.target, each.size) for each in contribution[-2:]]
    evaluate = (result(sample),)
    means = {f"mean_{each.name}": each.size for each in summed}
    update = Scope(draw, {**{name: SIZES[name] for name in SHARED}, **means, "rate": 1})
    if apart:
        update.apart |= {name for name, shared in SHARED.items() if not shared} | means.keys()
    changes = update.changes(SHARED)
    return system(
        "data-parallel",
        numerics,
        contributions=tuple(summed),
        contribution=tuple(contribution),
        evaluate=evaluate,
        update=changes,
    )


@st.composite
def by_coordinates(draw: st.DrawFn) -> System:
    sample = Scope(draw, {"s": 1, "z": 1, "y": 1, **sizes("w", "x")}, {"w", "x"})
    contribution = (
        sample.local(1, shared=True),
        sample.local(WIDTH),
        replace(sample.local(WIDTH), target="g"),
    )
    sample.sizes.pop("t3")
    update = Scope(draw, {**{name: SIZES[name] for name in SHARED}, "mean_g": WIDTH, "rate": 1})
    update.apart |= {name for name, shared in SHARED.items() if not shared} | {"mean_g"}
    changes = update.changes(SHARED)
    sample.sizes = {name: size for name, size in sample.sizes.items() if name not in sample.apart}
    return system(
        "coordinate-owned",
        "binary64-ordered",
        forward=(
            Assignment("s", 1, Dot("w", "x", WIDTH), local=True),
            Assignment("z", 1, Sum("w", WIDTH), local=True),
        ),
        contributions=(Field("g", WIDTH),),
        contribution=contribution,
        evaluate=(result(sample),),
        update=changes,
    )


@st.composite
def alone(draw: st.DrawFn) -> System:
    evaluate = Scope(draw, sizes("w", "x", "y"), {"w", "x"})
    own = evaluate.local(WIDTH)
    local = Scope(draw, {**{name: SIZES[name] for name in SHARED}, **sizes("x", "y"), "rate": 1})
    local.apart |= {name for name, shared in SHARED.items() if not shared} | {"x"}
    return system(
        "independent",
        "binary64-ordered",
        evaluate=(own, Assignment("loss", 1, Dot(own.target, "x", WIDTH), local=False)),
        local=local.changes(SHARED),
    )


@pytest.fixture(scope="module")
def run(standin: StandIn) -> Callable[[Case], None]:
    def checked(case: Case) -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            driver = Driver(Path(folder), standin.libcuda, (CARD,))
            with contextlib.suppress(NonFiniteError):
                check(driver, case)

    return checked


tried = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@given(by_rows(apart=False))
@tried
def test_rows_replicated(run: Callable[[Case], None], made: System) -> None:
    run(among(made, (2, 0, 3)))


@given(by_rows(apart=False, numerics="binary32-ordered"))
@tried
def test_rows_replicated_in_binary32(run: Callable[[Case], None], made: System) -> None:
    run(among(made, (5,)))


@given(by_rows(apart=True), st.sampled_from(OWNERSHIPS))
@tried
def test_rows_apart(run: Callable[[Case], None], made: System, ownership: Ownership) -> None:
    run(among(made, (1, 3, 1), 2, ownership))


@given(by_coordinates())
@tried
def test_owners_of_coordinates(run: Callable[[Case], None], made: System) -> None:
    run(among(made, (0, 0), 0, APART))


@given(alone(), st.sampled_from([(0,), (0, 0), (0, 0, 0, 0)]))
@tried
def test_coordinates_alone(run: Callable[[Case], None], made: System, counts: tuple[int, ...]) -> None:
    run(among(made, counts, 0, APART))


def test_a_program_with_the_largest_kernels_is_small(program_cache: Path) -> None:
    plan = derive(read_native_run(CONTENT / "specs" / "runs" / "two-layer.yaml")).plan
    card = read_device(CONTENT / "specs" / "devices" / "nvidia-geforce-rtx-3070.yaml")
    for program in build_programs(
        plan, [(plan.roles[0], Made(target, card)) for target in TARGETS], CONTENT, program_cache
    ):
        assert program.size <= 32 * 1024
