"""Kernels go through the real assembler for every architecture, and what is wrong with one is found."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.build import assembler
from orchestrator.build.assemble import assemble
from orchestrator.build.kernels import kernels
from orchestrator.errors import Label, RefusedError
from orchestrator.plan.derive import derive
from orchestrator.plan.model import Plan
from orchestrator.spec.read import read_run
from orchestrator.spec.run import RunSpec

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="NVIDIA's tools are wheels for Linux")
RUNS = Path(__file__).resolve().parents[3] / "specs" / "runs"
CAPABILITIES = ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0")
NAMES = ("samples", "adam", "logistic", "two-layer", "wide-adam", "coordinates", "correlations")


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    """One plan for each of the systems that differ, and one in narrow words."""
    found = {name: plan(name) for name in NAMES}
    narrow = replace(found["logistic"].system, numerics="binary32-ordered")
    return found | {"narrow": replace(found["logistic"], system=narrow)}


def plan(name: str) -> Plan:
    run = read_run(RUNS / f"{name}.yaml")
    assert isinstance(run, RunSpec)
    return derive(run).plan


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_every_shipped_system_is_assembled(plans: dict[str, Plan], capability: str) -> None:
    modules = {name: kernels(each, each.roles[0], capability).ptx for name, each in plans.items()}
    reports = assemble(modules)
    assert reports.keys() == plans.keys()
    for name, report in reports.items():
        assert report.architecture == f"sm_{capability.replace('.', '')}"
        assert {"terms", "sums", "update_0"} <= report.usage.keys(), name
        for usage in report.usage.values():
            assert 0 < usage.registers <= 255
            assert (usage.stack, usage.spills, usage.shared) == (0, 0, 0)


def refused(text: str) -> list[str]:
    with pytest.raises(RefusedError) as caught:
        assemble({"a": text})
    assert {refusal.label for refusal in caught.value.refusals} == {Label.PTX}
    return [refusal.message for refusal in caught.value.refusals]


def mutant(
    plans: dict[str, Plan], change: tuple[str, str], capability: str = "8.0", name: str = "adam"
) -> str:
    text = kernels(plans[name], plans[name].roles[0], capability).ptx
    assert change[0] in text
    return text.replace(*change)


@pytest.mark.parametrize(
    ("name", "capability", "fused"),
    [("adam", "8.0", "DFMA"), ("narrow", "8.0", "FFMA"), ("narrow", "12.0", "FFMA")],
)
def test_what_is_not_rounded_by_itself_is_contracted_and_found(plans, name, capability, fused) -> None:
    """Every addition and multiplication without `.rn`: the assembler may fuse them, and does."""
    text = mutant(plans, ("add.rn.", "add."), capability, name).replace("mul.rn.", "mul.")
    said = refused(text)
    assert [each for each in said if "contracted" in each and fused in each]
    assert [each for each in said if "got add.f, expected" in each]


@pytest.mark.parametrize(
    ("change", "got"),
    [
        (("div.rn.f32", "div.approx.f32"), "div.approx.f"),
        (("mul.rn.f32", "mul.rn.ftz.f32"), "mul.rn.ftz.f"),
        (("sqrt.rn.f32", "sqrt.approx.ftz.f32"), "sqrt.approx.ftz.f"),
    ],
)
def test_what_approximates_or_flushes_is_refused(plans, change: tuple[str, str], got: str) -> None:
    assert [each for each in refused(mutant(plans, change, name="narrow")) if f"got {got}," in each]


def test_what_a_fused_operation_is_written_as_is_refused(plans) -> None:
    change = ("add.rn.f64 f2,f2,f5;", "fma.rn.f64 f2,f3,f4,f2;")
    said = refused(mutant(plans, change))
    assert [each for each in said if "got DFMA, expected none" in each]
    assert [each for each in said if "got fma.rn.f," in each]


LOCAL = """@p0 ret;
.local .align 8 .b8 kept[800];
.reg .b64 k<3>;
.reg .b32 q;
mov.u64 k0,kept;
mad.wide.u32 k1,r0,4,k0;
st.local.u32 [k1],r0;
ld.local.u32 q,[k0+400];
ld.param.u64 k2,[A];
st.global.u32 [k2],q;"""


def test_local_memory_is_refused(plans) -> None:
    said = refused(mutant(plans, ("@p0 ret;", LOCAL)))
    assert [each for each in said if "got 0 bytes of spills, 800 of local memory, expected 0" in each]


def test_what_is_no_ptx_is_refused_with_what_the_assembler_says(plans) -> None:
    (message,) = refused(mutant(plans, ("mad.lo.u32 r0", "mad.lo.u32 nowhere")))
    assert "nowhere" in message


def test_modules_of_two_targets_are_not_mixed(plans) -> None:
    one, other = (kernels(plans["samples"], plans["samples"].roles[0], each).ptx for each in ("8.6", "9.0"))
    with pytest.raises(ValueError, match="got 2, expected 1"):
        assemble({"a": one, "b": other})


def test_without_the_tools_it_is_said_how_to_get_them(plans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembler, "_WHEEL", "nowhere.to_be_found")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RefusedError) as caught:
        assemble({"a": kernels(plans["samples"], plans["samples"].roles[0], "8.6").ptx})
    (refusal,) = caught.value.refusals
    assert refusal.label is Label.ASSEMBLER_MISSING
    assert refusal.hint == "pip install 'orch-qualify[device]'"
