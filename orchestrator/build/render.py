"""A role's part of a plan as a C header.

Knows the plan and the template; knows no compiler. The template holds data and expressions only: what is
computed here and what the C files compute never depends on each other's text.
"""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from orchestrator.admit.memory import restore_words
from orchestrator.build.expressions import constant
from orchestrator.build.kernels import kernels
from orchestrator.build.packed import FIRST, packed
from orchestrator.build.programs import programs
from orchestrator.plan.model import Field, Plan, Role
from orchestrator.plan.places import extents
from orchestrator.plan.resident import buffers
from orchestrator.plan.rounds import window_words
from orchestrator.spec.device import DeviceSpec

TEMPLATE = "plan.h.j2"

# A checkpoint of another plan may name more owners than this one has roles.
_LEAST_MANIFEST_BYTES = 65536
_LONGEST_NUMBER = 20


def render_header(plan: Plan, role: Role, native: Path, device: DeviceSpec | None) -> str:
    """The header `plan.h` for one role.

    Args:
        plan: what is computed.
        role: by whom.
        native: the folder of the template.
        device: the card that it is computed on; None for the host.

    Raises:
        ValueError: no kernels are made for the card.
    """
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
    return environment.get_template(TEMPLATE).render(
        _values(plan, role), device=_device_values(plan, role, device) if device else None
    )


def _values(plan: Plan, role: Role) -> dict[str, object]:
    system = plan.system
    fields = system.state_fields
    words = extents(plan, role)
    return {
        "word": system.word,
        "plan_digest": _digest(plan.digest),
        "system_digest": _digest(system.digest),
        "role": role,
        "role_count": len(plan.roles),
        "fan_out": plan.topology.fan_out,
        "child_names": tuple(plan.roles[child].name for child in plan.topology.children(role.index)),
        "role_samples": words.samples,
        "role_mass": _mass(plan, role),
        "parameters_partitioned": int(system.has_own_rows and plan.ownership.parameters == "partitioned"),
        "gradients_partitioned": int(system.has_own_rows and plan.ownership.gradients == "partitioned"),
        "held_is_whole": int(not any(plan.is_partitioned(field) for field in fields)),
        "update_is_whole": int(not plan.ownership.is_partitioned),
        "by_modulo": int(not plan.ownership.ranges),
        "ranges": _ranges(plan, role),
        "segments": _segments(plan, role),
        "sample_words": words.sample,
        "parameter_words": words.parameters,
        "parameter_count": len(system.parameters),
        "held_words": words.held,
        "mean_words": sum(field.size for field in system.combined),
        "own_mean_words": words.own_means,
        "sum_words": words.sums,
        "term_words": words.terms,
        "forward_count": len(system.forward),
        "is_local": int(bool(system.local)),
        "mean_sizes": tuple(field.size for field in system.combined),
        "loss": system.results.index("loss"),
        "fields": _fields(plan, role),
        "header_order": _header_order(fields),
        "initial": _initial(plan, role),
        "results": tuple(sorted((name, at) for at, name in enumerate(system.results))),
        **programs(plan, role),
        "window_words": window_words(plan),
        "restore_words": restore_words(system),
        "manifest_bytes": _manifest_bytes(plan, role),
        "shard_header_bytes": 512 + sum(len(f.name) + 7 * _LONGEST_NUMBER + 64 for f in fields),
    }


def _device_values(plan: Plan, role: Role, device: DeviceSpec) -> dict[str, object]:
    """Of a device role: its kernels, and the card that they are for."""
    capability, memory = (device.facts[name].value for name in ("compute_capability", "memory_total"))
    made = kernels(plan, role, str(capability))
    return {
        "kernels": made,
        "packed": packed(made.ptx),
        "first_pair": FIRST,
        "product": _text(device.product),
        "product_json": _text(json.dumps(device.product, ensure_ascii=False)),
        "capability": str(capability).split("."),
        "lease_bytes": sum(buffers(plan, role).values()),
        "drivers": tuple(memory) if isinstance(memory, Mapping) else (),
    }


def _text(text: str) -> str:
    """A C string."""
    plain = set(string.ascii_letters + string.digits + " ()-./,:")
    octets = (chr(byte) if chr(byte) in plain else f"\\{byte:03o}" for byte in text.encode())
    return f'"{"".join(octets)}"'


def _mass(plan: Plan, role: Role) -> int:
    """What a role adds to the count of samples; samples that everyone has count once."""
    return len(plan.rows(role)) if plan.system.has_own_rows or role.index == 0 else 0


def _fields(plan: Plan, role: Role) -> tuple[dict[str, object], ...]:
    fields = plan.system.state_fields
    held = tuple(plan.held(field, role) for field in fields)
    places = accumulate((part.count for part in held), initial=0)
    return tuple(
        {
            "name": field.name,
            "size": field.size,
            "holding": _holding(plan, field),
            "place": place,
            "held": part,
        }
        for field, part, place in zip(fields, held, places, strict=False)
    )


def _holding(plan: Plan, field: Field) -> str:
    if field.shared:
        return "SHARED"
    return "PARTITIONED" if plan.is_partitioned(field) else "REPLICATED"


def _ranges(plan: Plan, role: Role) -> tuple[tuple[int, int], ...]:
    """Declared coordinates of the role, then of each child alone."""
    if not plan.ownership.ranges:
        return ()
    own = (role.index, *plan.topology.children(role.index))
    return tuple((plan.ownership.ranges[each].start, plan.ownership.ranges[each].stop) for each in own)


def _segments(plan: Plan, role: Role) -> tuple[tuple[int, int], ...]:
    """Where runs of coordinates from one slot end: 0 the role, i + 1 its child i and all below it."""
    if not plan.ownership.ranges:
        return ()
    children = plan.topology.children(role.index)
    slots = {role.index: 0}
    for slot, child in enumerate(children, 1):
        slots |= {below: slot for level in plan.topology.below(child) for below in level}
    ends: list[tuple[int, int]] = []
    ranges = enumerate(plan.ownership.ranges)
    for index, own in sorted(ranges, key=lambda each: (each[1].start, each[1].stop)):
        slot = slots.get(index, len(children) + 1)
        if own and ends and ends[-1][1] == slot:
            ends.pop()
        if own:
            ends.append((own.stop, slot))
    return tuple(ends)


def _digest(text: str) -> str:
    return ", ".join(f"0x{byte:02x}" for byte in bytes.fromhex(text))


def _header_order(fields: tuple[Field, ...]) -> tuple[int, ...]:
    """Places of a shard header's keys in byte order: a field's index, or their count for `__metadata__`."""
    keys = [*(f"{field.name}[" for field in fields), "__metadata__"]
    return tuple(sorted(range(len(keys)), key=keys.__getitem__))


def _initial(plan: Plan, role: Role) -> tuple[tuple[int, str], ...]:
    runs = tuple((count, constant(word)) for word, count in plan.initial_runs(role))
    # a role that holds nothing has an empty run
    return runs or ((0, constant(0.0)),)


def _manifest_bytes(plan: Plan, role: Role) -> int:
    fields = plan.system.state_fields
    regions = sum(len(field.name) + 3 * _LONGEST_NUMBER + 50 for field in fields)
    named = (role.index, *plan.topology.children(role.index))
    shards = sum(len(plan.roles[each].name) + 2 * _LONGEST_NUMBER + 160 + regions for each in named)
    return max(_LEAST_MANIFEST_BYTES, 512 + shards)
