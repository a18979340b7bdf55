"""Plans made by hand, so that these tests stand on the plan's types alone."""

from __future__ import annotations

import array
import hashlib
from dataclasses import dataclass, replace

from orchestrator.plan import topology
from orchestrator.plan.derive import own_samples
from orchestrator.plan.model import Field, Plan, Role, System
from orchestrator.plan.ownership import Ownership
from orchestrator.plan.tree import Assignment, Binary, Dot, Number, SquareRoot, Word

REPLICATED = Ownership("replicated", "replicated", "replicated")


@dataclass(frozen=True)
class Case:
    """A plan and all its sample words, row by row."""

    plan: Plan
    words: tuple[float, ...]

    def samples(self, role: Role) -> bytes:
        words = array.array(self.plan.system.word.typecode, self.words)
        return own_samples(self.plan, role, words).tobytes()


def words_bytes(words: tuple[float, ...]) -> bytes:
    return array.array("d", words).tobytes()


def roles(*counts: tuple[str, int]) -> tuple[Role, ...]:
    made: list[Role] = []
    for index, (name, samples) in enumerate(counts):
        made.append(Role(name, index, sum(role.samples for role in made), samples))
    return tuple(made)


def case(system: System, words: tuple[float, ...], who: tuple[Role, ...]) -> Case:
    system = replace(
        system,
        rows=len(words) // system.sample_words,
        samples_sha256=hashlib.sha256(words_bytes(words)).hexdigest(),
    )
    return Case(Plan(system, who, topology.star(len(who)), REPLICATED), words)


def _set(target: str, value: object, *, size: int = 1, local: bool = False) -> Assignment:
    return Assignment(target, size, value, local)


def _times(left: object, right: object) -> Binary:
    return Binary("*", left, right)


_HALF_SQUARE = _times(_times(Number(0.5), Word("e", 0)), Word("e", 0))

# The pair: w = 0 at first, rate 1/2; its first update gives exactly 1/2.
SCALAR = System(
    name="scalar",
    kind="data-parallel",
    parameters=(Field("w", 1, (0.0,)),),
    state=(),
    sample=(Field("x", 1), Field("y", 1)),
    contributions=(Field("g", 1),),
    contribution=(
        _set("e", Binary("-", _times(Word("w", 0), Word("x", 0)), Word("y", 0)), local=True),
        _set("g", _times(Word("e", 0), Word("x", 0))),
    ),
    update=(_set("w", Binary("-", Word("w", 0), _times(Word("rate", 0), Word("mean_g", 0)))),),
    evaluate=(_set("loss", _HALF_SQUARE),),
    results=("loss",),
    rate=0.5,
    rows=3,
    samples_sha256="",
    numerics="binary64-ordered",
)
PAIR_WORDS = (1.0, 1.5, 1.0, 1.0, 1.0, 0.5)


def pair() -> Case:
    return case(SCALAR, PAIR_WORDS, roles(("coordinator", 1), ("worker", 2)))


# Momentum over three coordinates: a state field, a dot product, vectors. `W` sorts before `__metadata__`.
WIDTH = 3
MOMENTUM = System(
    name="momentum",
    kind="data-parallel",
    parameters=(Field("W", WIDTH, (0.25, 0.25, -0.5)),),
    state=(Field("v", WIDTH, (0.0, 0.0, 0.0)),),
    sample=(Field("x", WIDTH), Field("y", 1)),
    contributions=(Field("g", WIDTH),),
    contribution=(
        _set("e", Binary("-", Dot("W", "x", WIDTH), Word("y", 0)), local=True),
        _set("g", _times(Word("e", 0), Word("x", None)), size=WIDTH),
    ),
    update=(
        _set("v", Binary("+", _times(Number(0.9), Word("v", None)), Word("mean_g", None)), size=WIDTH),
        _set("W", Binary("-", Word("W", None), _times(Word("rate", 0), Word("v", None))), size=WIDTH),
    ),
    evaluate=(
        _set("square", _times(Word("e", 0), Word("e", 0))),
        _set("loss", _times(Number(0.5), Word("square", 0))),
    ),
    results=("square", "loss"),
    rate=0.1,
    rows=5,
    samples_sha256="",
    numerics="binary64-ordered",
)
STAR_WORDS = tuple((7 * i % 11 - 5) / 3 for i in range(5 * (WIDTH + 1)))


def star() -> Case:
    """Three roles, one of them without samples."""
    return case(MOMENTUM, STAR_WORDS, roles(("root", 2), ("idle", 0), ("worker", 3)))


def single() -> Case:
    return case(MOMENTUM, STAR_WORDS, roles(("alone", 5)))


# Adam with its two powers as words of the state that every role computes for itself.
ADAM = replace(
    MOMENTUM,
    name="adam",
    state=(
        Field("m", WIDTH, (0.0,) * WIDTH),
        Field("p1", 1, (1.0,), shared=True),
        Field("p2", 1, (1.0,), shared=True),
        Field("v", WIDTH, (0.0,) * WIDTH),
    ),
    update=(
        _set("p1", _times(Word("p1", 0), Number(0.9))),
        _set("p2", _times(Word("p2", 0), Number(0.999))),
        _set("r1", Binary("/", Number(1.0), Binary("-", Number(1.0), Word("p1", 0))), local=True),
        _set("r2", Binary("/", Number(1.0), Binary("-", Number(1.0), Word("p2", 0))), local=True),
        _set(
            "m",
            Binary("+", _times(Number(0.9), Word("m", None)), _times(Number(0.1), Word("mean_g", None))),
            size=WIDTH,
        ),
        _set("square", _times(Word("mean_g", None), Word("mean_g", None)), size=WIDTH, local=True),
        _set(
            "v",
            Binary("+", _times(Number(0.999), Word("v", None)), _times(Number(0.001), Word("square", None))),
            size=WIDTH,
        ),
        _set(
            "W",
            Binary(
                "-",
                Word("W", None),
                Binary(
                    "/",
                    _times(Word("rate", 0), _times(Word("m", None), Word("r1", 0))),
                    Binary("+", SquareRoot(_times(Word("v", None), Word("r2", 0))), Number(1e-8)),
                ),
            ),
            size=WIDTH,
        ),
    ),
)


def among(
    system: System, counts: tuple[int, ...], fan_out: int = 0, ownership: Ownership = REPLICATED
) -> Case:
    """As many roles as counts, each with so many of the five samples; a tree if it has a fan-out."""
    who = roles(*((f"role{at}", count) for at, count in enumerate(counts)))
    made = case(system, STAR_WORDS, who)
    shape = topology.Topology("hierarchy", len(who), fan_out) if fan_out else made.plan.topology
    return replace(made, plan=replace(made.plan, topology=shape, ownership=ownership))


def momentum_trajectory(who: tuple[Role, ...], updates: int) -> list[tuple[tuple[float, ...], float]]:
    """State and loss after each update, by plain loops in the declared order."""
    w, v = [0.25, 0.25, -0.5], [0.0, 0.0, 0.0]
    out = []
    for _ in range(updates):
        sums = []
        for role in who:
            own = [0.0] * (WIDTH + 2)
            for row in range(role.first_sample, role.first_sample + role.samples):
                *x, y = STAR_WORDS[row * (WIDTH + 1) : (row + 1) * (WIDTH + 1)]
                dot = w[0] * x[0]
                for i in range(1, WIDTH):
                    dot = dot + w[i] * x[i]
                e = dot - y
                for i in range(WIDTH):
                    own[i] += e * x[i]
                own[WIDTH] += e * e
                own[WIDTH + 1] += 0.5 * (e * e)
            sums.append([*own, float(role.samples)])
        total = sums[0]
        for other in sums[1:]:
            total = [a + b for a, b in zip(total, other, strict=True)]
        for i in range(WIDTH):
            v[i] = 0.9 * v[i] + total[i] / total[-1]
            w[i] = w[i] - 0.1 * v[i]
        out.append(((*w, *v), total[WIDTH + 1]))
    return out
