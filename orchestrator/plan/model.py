"""The plan: system, sample digest, roles, topology, ownership, combine order, numerics, and its identities.

Knows nothing about epochs, update counts, ports, targets, devices or paths: two deployments of one plan
have the same digest. Words are IEEE 754 numbers of one width; the *state vector* is every parameter field,
then every optimizer state field, in declared field and index order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from evidence.digest import sha256_json
from orchestrator.plan.ownership import Ownership, Part, part
from orchestrator.plan.roles import Role as Role  # noqa: PLC0414  # a plan's roles are named from here
from orchestrator.plan.roles import roles_json
from orchestrator.plan.topology import Topology
from orchestrator.plan.tree import Assignment, as_json
from orchestrator.plan.words import WORD_TYPES, WordType
from orchestrator.spec.numerics import Bound
from orchestrator.spec.repeated import Repeated, repeated
from orchestrator.spec.system import BY_ROWS

SCHEMA = "orch-plan/v2"


@dataclass(frozen=True)
class Field:
    """A named run of words.

    Attributes:
        name: as declared.
        size: words.
        initial: `size` words, kept by runs where they are many; empty for fields that hold no state (samples,
            contributions).
        shared: declared to be every role's own to compute: its update reads no mean and no owned word.
    """

    name: str
    size: int
    initial: Sequence[float] = ()
    shared: bool = False

    @property
    def initial_runs(self) -> tuple[tuple[float, int], ...]:
        """The initial words as runs of equal bits: word, and how many times it stands there."""
        if isinstance(self.initial, Repeated):
            return repeated(self.initial.runs, float.hex).runs
        return repeated(((word, 1) for word in self.initial), float.hex).runs


@dataclass(frozen=True)
class System:
    """A learner with no device, host or address in it.

    Attributes:
        name: what people call it; outside every identity.
        kind: `data-parallel`, `coordinate-owned` or `independent`: see `docs/systems.md`.
        parameters: fields that contributions read.
        state: optimizer state fields.
        sample: the columns of one sample, in file order.
        contributions: what one sample adds; `update` reads field X as its mean over all samples, `mean_X`.
        contribution: per-sample program; reads parameters and one sample.
        update: reads parameters, state, means and `rate`; writes parameters and state.
        evaluate: per-sample program that runs after `contribution`'s statements and assigns the results.
        results: scalars that `evaluate` assigns, in order, `loss` among them; each is summed over samples.
        rate: the constant that `update` reads as `rate`.
        rows: samples.
        samples_sha256: of all sample words, row by row, little-endian.
        numerics: `binary64-ordered` or `binary32-ordered`; `binary64-approximate` likewise, with a bound.
        forward: of `coordinate-owned`, for each sample the sums over coordinates that owners make together.
        local: of `independent`, what one sample does to each coordinate; it is instead of the update.
        bound: how near to the reference's words are near enough; None if they must be the same.
    """

    name: str
    kind: str
    parameters: tuple[Field, ...]
    state: tuple[Field, ...]
    sample: tuple[Field, ...]
    contributions: tuple[Field, ...]
    contribution: tuple[Assignment, ...]
    update: tuple[Assignment, ...]
    evaluate: tuple[Assignment, ...]
    results: tuple[str, ...]
    rate: float
    rows: int
    samples_sha256: str
    numerics: str
    forward: tuple[Assignment, ...] = ()
    local: tuple[Assignment, ...] = ()
    bound: Bound | None = None

    @property
    def contract(self) -> str:
        """The numerical contract as people read it: its name, and the bound if it has one."""
        return self.numerics if self.bound is None else f"{self.numerics}, {self.bound}"

    @property
    def word(self) -> WordType:
        """What states, samples and contributions are made of."""
        return WORD_TYPES[self.numerics]

    @property
    def state_fields(self) -> tuple[Field, ...]:
        """Parameters, then optimizer state: the order of the state vector."""
        return self.parameters + self.state

    @property
    def state_words(self) -> int:
        """Words of the state vector."""
        return sum(field.size for field in self.state_fields)

    @property
    def sample_words(self) -> int:
        """Words of one sample."""
        return sum(field.size for field in self.sample)

    @property
    def has_own_rows(self) -> bool:
        """Whether samples are dealt out by rows; else every role has all of them, in its own columns."""
        return self.kind in BY_ROWS

    @property
    def combined(self) -> tuple[Field, ...]:
        """What is added up over all roles besides results: contributions, or forward sums of every sample."""
        if self.has_own_rows:
            return self.contributions
        return tuple(Field(statement.target, self.rows) for statement in self.forward)

    @property
    def combined_words(self) -> int:
        """Words of one owner's frame: what is combined, results, the sample mass, in that order."""
        return sum(field.size for field in self.combined) + len(self.results) + 1

    @cached_property
    def digest(self) -> str:
        """The `system` identity: decides whether a checkpoint may be loaded."""
        return sha256_json(self.as_json())

    def as_json(self) -> dict[str, object]:
        """Everything that the identity covers; not the name, nor the text that the trees were parsed from."""
        of_the_kind = {"forward": self.forward, "local": self.local}
        return {
            **{name: [as_json(each) for each in program] for name, program in of_the_kind.items() if program},
            "kind": self.kind,
            "parameters": [_field_json(field) for field in self.parameters],
            "state": [_field_json(field) for field in self.state],
            "sample": [[field.name, field.size] for field in self.sample],
            "contributions": [[field.name, field.size] for field in self.contributions],
            "contribution": [as_json(statement) for statement in self.contribution],
            "update": [as_json(statement) for statement in self.update],
            "evaluate": [as_json(statement) for statement in self.evaluate],
            "results": list(self.results),
            "rate": self.rate.hex(),
            "samples": {"rows": self.rows, "sha256": self.samples_sha256},
            "numerics": self.numerics if self.bound is None else self._approximate_json(self.bound),
        }

    def _approximate_json(self, bound: Bound) -> dict[str, object]:
        amounts = {"relative": bound.relative.hex(), "absolute": bound.absolute.hex()}
        return {"kind": "approximate", "word": self.word.dtype, **amounts}


@dataclass(frozen=True)
class Plan:
    """What every role computes, holds and says. Its digest is in every frame."""

    system: System
    roles: Sequence[Role]
    topology: Topology
    ownership: Ownership

    @cached_property
    def digest(self) -> str:
        """The `plan` identity: decides whether two roles may talk."""
        return sha256_json(self.as_json())

    @property
    def system_digest(self) -> str:
        """The `system` identity."""
        return self.system.digest

    def is_partitioned(self, field: Field) -> bool:
        """Whether a role holds its own coordinates of a state field alone."""
        parameters = any(each.name == field.name for each in self.system.parameters)
        how = self.ownership.parameters if parameters else self.ownership.optimizer_state
        return how == "partitioned" and not field.shared

    def owned(self, field: Field, role: Role) -> Part:
        """Coordinates of a state field that belong to a role; of a shared field the root owns all."""
        if field.shared:
            return part(0, 1, field.size if role.index == 0 else 0)
        return self.ownership.owned(field.size, role.index, len(self.roles))

    def held(self, field: Field, role: Role) -> Part:
        """Coordinates of a state field that a role holds from update to update."""
        return self.owned(field, role) if self.is_partitioned(field) else part(0, 1, field.size)

    def initial_runs(self, role: Role) -> tuple[tuple[float, int], ...]:
        """What a role holds before the first update, as runs of equal bits: word, and how many times."""
        runs = []
        for field in self.system.state_fields:
            held, start = self.held(field, role), 0
            for word, count in field.initial_runs:
                end = start + count
                runs.append((word, held.count_before(end) - held.count_before(start)))
                start = end
        return repeated(runs, float.hex).runs

    def rows(self, role: Role) -> range:
        """The samples that a role has."""
        if self.system.has_own_rows:
            return range(role.first_sample, role.first_sample + role.samples)
        return range(self.system.rows)

    def columns(self, field: Field, role: Role) -> Part:
        """The coordinates of a sample field that a role has.

        Where it has all samples, these are its own coordinates; a column of one word is everyone's.
        """
        if self.system.has_own_rows or field.size == 1:
            return part(0, 1, field.size)
        return self.ownership.owned(field.size, role.index, len(self.roles))

    def published(self, field: Field, role: Role) -> Part:
        """Coordinates of a state field that a role writes into a checkpoint.

        Of a partitioned field its own. Of another, which it holds whole, a contiguous share: disjoint,
        together the whole field, [ceil(k r / n), ceil(k (r + 1) / n)).
        """
        if self.is_partitioned(field):
            return self.owned(field, role)
        count = len(self.roles)
        first, last = (-(-field.size * index // count) for index in (role.index, role.index + 1))
        return part(first, 1, last - first)

    def as_json(self) -> dict[str, object]:
        """Everything that the identity covers."""
        return {
            "schema": SCHEMA,
            "system": self.system.as_json(),
            "roles": roles_json(self.roles),
            "topology": self.topology.as_json(),
            "ownership": self.ownership.as_json(),
            "combine": self.topology.combine_json(),
        }

    def file_json(self) -> dict[str, object]:
        """The content of a bundle's `plan.json`: the plan, its digest, and its system's."""
        return {**self.as_json(), "digest": self.digest, "system_digest": self.system_digest}


def _field_json(field: Field) -> list[object]:
    words = [[word.hex(), count] for word, count in field.initial_runs]
    return [field.name, field.size, words, "shared"] if field.shared else [field.name, field.size, words]
