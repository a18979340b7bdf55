"""What device roles ask of their cards, counted by hand from what a round does."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.build.counted import Counted, counted
from orchestrator.build.kernels import kernels
from orchestrator.build.packed import Packed, packed
from orchestrator.build.render import render_header
from orchestrator.plan.derive import derive
from orchestrator.plan.model import Plan, Role
from orchestrator.plan.ownership import Ownership
from orchestrator.plan.resident import buffers
from orchestrator.spec.read import read_device, read_run

CONTENT = Path(__file__).resolve().parents[3]


def shipped(name: str, *ownership: str) -> Plan:
    plan = derive(read_run(CONTENT / "specs" / "runs" / f"{name}.yaml")).plan
    return replace(plan, ownership=Ownership(*ownership)) if ownership else plan


def count(plan: Plan, role: Role, mode: str, updates: int) -> Counted:
    return counted(plan, role, kernels(plan, role, "8.6"), mode=mode, updates=updates)


def test_rows_with_everything_replicated() -> None:
    plan = shipped("samples")  # one word of state, two of a sample, totals of three
    for role, rows in zip(plan.roles, (1, 2), strict=True):
        at_start = 1 + 2 * rows
        assert count(plan, role, "train", 5) == Counted(
            launches=5 * 3, to_device=8 * (at_start + 5 * 3), from_device=8 * 5 * (2 + 1), allocated=5 * 256
        )
        assert count(plan, role, "evaluate", 0) == Counted(2, 8 * at_start, 8 * (2 + 1), 5 * 256)


def test_rows_with_everything_partitioned() -> None:
    plan = shipped("adam", "partitioned", "partitioned", "partitioned")
    role, own = plan.roles[2], 2
    held, rows = 3 * own + 2, role.samples
    made = count(plan, role, "train", 2)
    assert made.launches == 2 * (2 + 2)
    assert made.to_device == 8 * (held + 11 * rows + 2 * (10 + own + 2))
    assert made.from_device == 8 * 2 * (11 + held)


def test_what_is_computed_by_one_and_held_by_all_comes_back() -> None:
    plan = shipped("adam", "replicated", "partitioned", "replicated")
    role, own = plan.roles[2], 2
    held = 10 + 2 * own + 2
    made = count(plan, role, "train", 1)
    assert made.to_device == 8 * (held + 11 * role.samples + 12 + 10)  # state, samples, totals, then w


def test_a_role_without_samples_starts_nothing_for_them() -> None:
    plan = shipped("samples")
    idle = replace(plan.roles[0], samples=0)
    assert count(plan, idle, "train", 3) == Counted(3, 8 * (1 + 3 * 3), 8 * 3 * 1, 3 * 256)


def test_owners_of_coordinates_ask_twice_a_round() -> None:
    plan = shipped("coordinates")
    role, rows = plan.roles[0], plan.system.rows
    own = plan.ownership.owned(10, 0, len(plan.roles)).count
    made = count(plan, role, "train", 3)
    held = 2 * own
    assert made.launches == 3 * (3 + 1)
    assert made.to_device == 8 * (held + rows * (own + 1) + 3 * (rows + 2))
    assert made.from_device == 8 * 3 * (rows + own + 1 + held)


def test_coordinates_without_means() -> None:
    plan = shipped("correlations")
    role = plan.roles[0]
    own = plan.ownership.owned(10, 0, len(plan.roles)).count
    made = count(plan, role, "train", 2)
    assert made.launches == 2 * (2 + 1)
    assert made.to_device == 8 * (2 * own + plan.system.rows * (own + 1))
    assert made.from_device == 8 * 2 * (1 + 2 * own)


@pytest.mark.parametrize("name", ["samples", "coordinates", "correlations"])
def test_the_header_of_a_device_role_says_what_is_counted(name: str) -> None:
    plan, device = shipped(name), read_device(CONTENT / "specs" / "devices" / "nvidia-geforce-rtx-3070.yaml")
    role, native = plan.roles[0], CONTENT / "roles" / "native"
    made = kernels(plan, role, "8.6")
    host, text = (render_header(plan, role, native, each) for each in (None, device))
    same, said = text.split("/* The kernels", 1)
    assert host == f"{same.replace('#define IS_DEVICE 1', '#define IS_DEVICE 0').rstrip()}\n\n#endif\n"
    assert f"#define LEASE_BYTES {sum(buffers(plan, role).values())}u" in said
    assert f"#define UPDATE_KERNELS {len(made.update)}u" in said
    assert '#define DEVICE_PRODUCT "NVIDIA GeForce RTX 3070"' in said
    assert r'#define DEVICE_PRODUCT_JSON "\042NVIDIA GeForce RTX 3070\042"' in said
    assert 'DEVICE_DRIVERS[] = {"550.54", "580.126.20", 0};' in said
    numbers = {
        name: [int(each) for each in re.findall(r"\d+", said.split(f"{name}[]", 1)[1].split(";", 1)[0])]
        for name in ("PTX_PAIRS", "PACKED_PTX")
    }
    flat = numbers["PTX_PAIRS"][1:]  # the first is of the type
    pairs = tuple(zip(flat[:-2:2], flat[1:-2:2], strict=True))
    size = int(said.split("#define PTX_BYTES ")[1].split("u")[0])
    assert Packed(bytes(numbers["PACKED_PTX"]), pairs, size) == packed(made.ptx)
