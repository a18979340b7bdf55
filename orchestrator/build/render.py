"""A role's part of a plan as a C header.

Knows the plan and the template; knows no compiler. The template holds data and expressions only: what is
computed here and what the C files compute never depends on each other's text.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from orchestrator.build.expressions import Place, constant, statements
from orchestrator.plan.model import Field, Plan, Role, System

TEMPLATE = "plan.h.j2"

# A checkpoint of another plan may name more owners than this one has roles.
_LEAST_MANIFEST_BYTES = 65536
_LONGEST_NUMBER = 20


def render_header(plan: Plan, role: Role, native: Path) -> str:
    """The header `plan.h` for one role; `native` is the folder of the template."""
    environment = Environment(
        loader=FileSystemLoader(native),
        undefined=StrictUndefined,
        # Delimiters that C cannot contain outside of strings.
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        comment_start_string="<#",
        comment_end_string="#>",
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - the output is C, not HTML
        keep_trailing_newline=True,
    )
    return environment.get_template(TEMPLATE).render(_values(plan, role))


def _values(plan: Plan, role: Role) -> dict[str, object]:
    system = plan.system
    fields = system.state_fields
    mean_words = sum(field.size for field in system.contributions)
    return {
        "plan_digest": _digest(plan.digest),
        "system_digest": _digest(system.digest),
        "role": role,
        "role_names": tuple(each.name for each in plan.roles),
        "sample_words": system.sample_words,
        "state_words": system.state_words,
        "mean_words": mean_words,
        "loss": system.results.index("loss"),
        "fields": tuple({"name": f.name, "first": at, "size": f.size} for f, at in _placed(fields)),
        "header_order": _header_order(fields),
        "own_regions": tuple(plan.published(field, role) for field in fields),
        "region_bounds": tuple(_bounds(plan, field) for field in fields),
        "initial": _initial(fields),
        "results": tuple(sorted((name, mean_words + at) for at, name in enumerate(system.results))),
        "terms": _terms(system, mean_words),
        "update": _update(system),
        "manifest_bytes": _manifest_bytes(plan),
        "shard_header_bytes": 256 + sum(len(f.name) + 6 * _LONGEST_NUMBER + 64 for f in fields),
    }


def _placed(fields: Iterable[Field]) -> tuple[tuple[Field, int], ...]:
    fields = tuple(fields)
    return tuple(zip(fields, accumulate((field.size for field in fields), initial=0), strict=False))


def _places(array: str, fields: Iterable[Field], prefix: str = "") -> dict[str, Place]:
    return {prefix + field.name: Place(array, first) for field, first in _placed(fields)}


def _terms(system: System, mean_words: int) -> tuple[str, ...]:
    places = {
        **_places("state", system.parameters),
        **_places("sample", system.sample),
        **_places("terms", system.contributions),
        **{name: Place("terms", mean_words + at) for at, name in enumerate(system.results)},
    }
    return statements(system.contribution + system.evaluate, places)


def _update(system: System) -> tuple[str, ...]:
    places = {
        **_places("state", system.state_fields),
        **_places("mean", system.contributions, "mean_"),
        "rate": Place("", 0, system.rate),
    }
    return statements(system.update, places)


def _digest(text: str) -> str:
    return ", ".join(f"0x{byte:02x}" for byte in bytes.fromhex(text))


def _header_order(fields: tuple[Field, ...]) -> tuple[int, ...]:
    """Places of a shard header's keys in byte order: a field's index, or their count for `__metadata__`."""
    keys = [*(f"{field.name}[" for field in fields), "__metadata__"]
    return tuple(sorted(range(len(keys)), key=keys.__getitem__))


def _bounds(plan: Plan, field: Field) -> tuple[int, ...]:
    """Where each role's part of a field begins, and the field's end: the parts lie in role order."""
    parts = tuple(plan.published(field, role) for role in plan.roles)
    return (*accumulate((part.count for part in parts), initial=0),)


def _initial(fields: tuple[Field, ...]) -> tuple[tuple[int, str], ...]:
    words = (constant(word) for field in fields for word in field.initial)
    return tuple((len(tuple(run)), word) for word, run in groupby(words))


def _manifest_bytes(plan: Plan) -> int:
    fields = plan.system.state_fields
    regions = sum(len(field.name) + 2 * _LONGEST_NUMBER + 40 for field in fields)
    shards = sum(2 * len(role.name) + 3 * _LONGEST_NUMBER + 160 + regions for role in plan.roles)
    return max(_LEAST_MANIFEST_BYTES, 512 + shards)
