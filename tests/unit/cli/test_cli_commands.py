"""Verbs that need no run: validate, schema, plan, build, elf, doctor, clean."""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path

import pytest

from orchestrator.cli.main import main


@pytest.fixture
def samples(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The shipped pair with two samples; what is compiled stays in the test's own folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return pytestconfig.rootpath / "lanes" / "samples.yaml"


def test_validate_says_all_refusals_of_all_files(tmp_path, capsys):
    one, two = tmp_path / "one.yaml", tmp_path / "two.toml"
    one.write_text("orch: lane/v1\nnmae: x\n")
    two.write_text('orch = "run/v9"\n')
    assert main(["validate", str(one), str(two), "--json"]) == 1
    out, err = capsys.readouterr()
    refusals = json.loads(out)["refusals"]
    assert {Path(refusal["path"]).name for refusal in refusals} == {"one.yaml", "two.toml"}
    assert len(err.splitlines()) == len(refusals) > 3
    unknown = next(refusal for refusal in refusals if refusal["label"] == "key-unknown")
    assert (unknown["line"], unknown["column"], unknown["key"]) == (2, 1, "nmae")


def test_schema_prints_lists_and_writes(tmp_path, capsys):
    assert main(["schema"]) == 0
    kinds = capsys.readouterr().out.split()
    assert "lane" in kinds
    assert main(["schema", "lane"]) == 0
    printed = capsys.readouterr().out
    assert main(["schema", "--write", str(tmp_path / "deep" / "schema")]) == 0
    assert (tmp_path / "deep" / "schema" / "lane.schema.json").read_text() == printed
    assert len(capsys.readouterr().out.splitlines()) == len(kinds)


def test_plan_of_a_run_spec_builds_nothing(samples, capsys, tmp_path):
    run = samples.parents[1] / "specs" / "runs" / "samples.yaml"
    assert main(["plan", str(run), "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert planned["programs"] == []
    assert not (tmp_path / "cache" / "orch" / "programs").exists()
    assert planned["combine"] == {"kind": "left-deep"}
    for role in planned["roles"]:
        assert role["memory"]["bytes"] == sum(line["bytes"] for line in role["memory"]["lines"])


def test_plan_of_a_lane_names_the_programs_that_build_writes(samples, capsys):
    assert main(["plan", str(samples), "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert main(["build", str(samples), "-o", "out", "--json"]) == 0
    built = json.loads(capsys.readouterr().out)
    assert built["plan"] == planned["plan"]
    assert [program["program_sha256"] for program in built["programs"]] == [
        program["program_sha256"] for program in planned["programs"]
    ]
    assert main(["plan", str(samples)]) == 0
    shown = capsys.readouterr().out
    for step in planned["steps"]:
        assert f". {step['name']}: {step['skipped'] or step['does']}\n" in shown


def test_build_writes_what_elf_verify_accepts(samples, capsys):
    assert main(["build", str(samples), "-o", "deep/out", "--json"]) == 0
    built = json.loads(capsys.readouterr().out)
    paths = [program["path"] for program in built["programs"]]
    assert paths == ["deep/out/coordinator.elf", "deep/out/worker.elf"]
    assert [path.name for path in sorted(Path("deep/out").iterdir())] == ["coordinator.elf", "worker.elf"]
    assert (
        main(["elf", "verify", *paths, "--plan", built["plan"], "--target", built["programs"][0]["target"]])
        == 0
    )
    assert capsys.readouterr().out.splitlines() == [f"{path}: sound" for path in paths]


def test_build_writes_through_no_link_that_somebody_planted(samples):
    Path("out").mkdir()
    Path("mine").write_text("mine")
    for name in (".worker.elf.part", "worker.elf"):
        (Path("out") / name).symlink_to("../mine")
    assert main(["build", str(samples), "-o", "out"]) == 0
    assert Path("mine").read_text() == "mine"
    assert not Path("out/worker.elf").is_symlink()
    assert Path("out/worker.elf").stat().st_mode & 0o777 == 0o755
    assert main(["elf", "verify", "out/worker.elf"]) == 0


def test_elf_verify_refuses_another_plan_another_target_and_no_elf(samples, capsys):
    assert main(["build", str(samples), "-o", "out"]) == 0
    capsys.readouterr()
    for arguments in (["--plan", "0" * 64], ["--target", "aarch64-linux"]):
        assert main(["elf", "verify", "out/worker.elf", *arguments]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("out/worker.elf: elf: ")
    Path("no.elf").write_bytes(b"#!/bin/sh\n")
    assert main(["elf", "verify", "no.elf", "--json"]) == 1
    (result,) = json.loads(capsys.readouterr().out)["files"]
    assert result["sound"] is False
    assert main(["elf", "verify", "absent.elf", "no.elf", "out/worker.elf"]) == 1
    out, err = capsys.readouterr()
    assert out == "out/worker.elf: sound\n"
    absent, no = err.splitlines()
    assert absent.startswith("absent.elf: elf: cannot be read (got: No such file")
    assert no.startswith("no.elf: elf: format: ")


def test_what_is_refused_is_refused_before_a_byte_is_built(samples, capsys, tmp_path):
    system = samples.parents[1] / "specs" / "systems" / "samples.yaml"
    run = tmp_path / "run.yaml"
    run.write_text(
        f"orch: run/v1\nname: small\nsystem: {system}\ntopology: pair\n"
        "roles: [a, b]\nsamples: {a: 1, b: rest}\n"
        "memory: {b: 1 KiB}\npairings:\n  a: {target: x86_64-linux}\n  b: {target: x86_64-linux}\n"
    )
    assert main(["build", str(run), "-o", "out"]) == 1
    assert f"{run}:7:" in (err := capsys.readouterr().err)
    assert "capacity-exceeded" in err
    assert not Path("out").exists()
    assert not (tmp_path / "cache" / "orch" / "programs").exists()


def test_build_into_a_file_is_usage(samples, capsys):
    Path("out").write_text("mine")
    assert main(["build", str(samples), "-o", "out"]) == 2
    assert "out/coordinator.elf: cannot be written" in capsys.readouterr().err
    assert Path("out").read_text() == "mine"


def test_a_cache_that_cannot_be_written_is_done_without(samples, capsys, monkeypatch):
    Path("file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path("file").resolve()))
    assert main(["build", str(samples), "-o", "out"]) == 0
    assert "worker" in capsys.readouterr().out


def test_doctor_tries_things_and_says_what_it_found(samples, capsys):
    del samples
    main(["doctor", "--json"])
    findings = {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["compiler"]["state"] == "ok"
    assert "aarch64-linux" in findings["compiler"]["detail"]
    native = {"x86_64": "x86_64-linux", "aarch64": "aarch64-linux"}[platform.machine()]
    assert findings[native]["state"] == "ok"
    assert findings[native]["detail"].startswith("role programs run in ")
    assert findings["project"]["state"] == "absent"
    assert findings["tracker"]["state"] == "absent"


def test_doctor_fails_on_what_is_broken(samples, capsys):
    del samples
    Path("orch.toml").write_text('bundles = "runs"\n')
    Path("runs").write_text("a file where bundles go")
    Path("tracker.sqlite3").write_text("no database")
    assert main(["doctor"]) == 1
    lines = {line.split()[0]: line.split()[1] for line in capsys.readouterr().out.splitlines()}
    assert (lines["bundles"], lines["tracker"], lines["python"]) == ("broken", "broken", "ok")


@pytest.mark.parametrize("place", ["/proc/orch/runs", "/dev/full", f"deep/{'x' * 300}", "gone/under/a"])
def test_doctor_tries_the_bundles_folder_and_leaves_no_trace(place, samples, capsys):
    del samples
    Path("orch.toml").write_text(f'bundles = "{place}"\n')
    before = sorted(Path().rglob("*"))
    main(["doctor", "--json"])
    findings = {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["bundles"]["state"] == ("ok" if place.startswith("gone") else "broken")
    assert sorted(Path().rglob("*")) == before


def test_doctor_finds_no_room(samples, capsys, monkeypatch):
    del samples
    usage = type(shutil.disk_usage("."))
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(1 << 30, 1 << 30, 0))
    assert main(["doctor", "--json"]) == 1
    findings = {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert "has no room: 0 B free" in findings["bundles"]["detail"]


def test_content_that_is_not_there_is_refused_where_it_is_named(samples, capsys):
    Path("orch.toml").write_text('owner = "ada"\ncontent = "/nope"\n')
    assert main(["plan", str(samples)]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"{Path.cwd()}/orch.toml:2:11: file-missing: is no content folder (got /nope")


def test_without_a_device_role_there_is_nothing_to_simulate(samples, capsys):
    assert main(["run", str(samples), "--pods", "simulated"]) == 1
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "pods" in line)
    assert line.startswith("simulated: pods-unsupported: there is nothing to simulate")
    assert "`--pods local`" in line
    assert not Path("runs").exists()


def test_a_pods_file_that_is_not_there_leaves_no_bundle(samples, capsys):
    assert main(["run", str(samples), "--pods", "rented.yaml"]) == 1
    assert "rented.yaml: file-missing: " in capsys.readouterr().err
    assert not Path("runs").exists()


def test_bundles_that_cannot_be_written_are_refused_by_label(samples, capsys):
    Path("file").write_text("")
    assert main(["run", str(samples), "--bundles", "file"]) == 1
    assert "file: write-failed: bundles cannot be written here" in capsys.readouterr().err


@pytest.fixture
def wide(samples, tmp_path) -> Path:
    """A run of forty workers that hold the same, and a root with the rest."""
    system = samples.parents[1] / "specs" / "systems" / "least-squares.yaml"
    run = tmp_path / "wide.yaml"
    run.write_text(
        f"orch: run/v1\nname: wide\nsystem: {system}\ntopology: star\n"
        'roles: [root, "worker[1-40]"]\nsamples: {root: rest, "worker[1-40]": 7}\n'
        'pairings: {"root,worker[1-40]": {target: x86_64-linux}}\n'
    )
    return run


def test_roles_that_hold_the_same_are_one_line_and_the_largest_is_laid_out(wide, capsys):
    assert main(["plan", str(wide)]) == 0
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in _after(shown, "memory of  ")] == ["root", "worker[1-40]"]
    assert [line for line in shown.splitlines() if line.startswith("memory of ")][1].startswith(
        "memory of root: "
    )
    assert "+ worker7 + ... 25 more ... + worker33 +" in shown


@pytest.mark.parametrize(
    ("arguments", "laid_out"), [(["--role", "worker7"], ["worker7"]), (["-v"], ["root", "worker1"])]
)
def test_any_role_s_memory_can_be_laid_out(arguments, laid_out, wide, capsys):
    assert main(["plan", str(wide), *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines if line.startswith("memory of ") and line.endswith("B")] == [
        f"{role}:" for role in laid_out
    ]


def test_a_role_that_is_not_there_is_usage(wide, capsys):
    assert main(["plan", str(wide), "--role", "boss"]) == 2
    assert "(got boss, expected one of root,worker[1-40])" in capsys.readouterr().err


def test_a_run_of_a_few_roles_is_told_by_role_and_by_classes(wide, capsys):
    assert main(["plan", str(wide), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [role["name"] for role in said["roles"]][:2] == ["root", "worker1"]
    assert [each["roles"] for each in said["role_classes"]] == ["root", "worker[1-40]"]
    memory = {each["roles"]: each["memory"] for each in said["role_classes"]}
    assert {role["memory"]["bytes"] for role in said["roles"][1:]} == {memory["worker[1-40]"]["bytes"]}


def _after(text: str, head: str) -> list[str]:
    """The lines of a table below the one that begins with its head, to the next empty one."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(head)) + 1
    return lines[start : lines.index("", start)]


@pytest.mark.parametrize("verb", [["plan"], ["build", "-o", "out"]])
def test_a_file_of_another_kind_is_refused_by_what_is_needed(verb, samples, capsys):
    system = samples.parents[1] / "specs" / "systems" / "samples.yaml"
    assert main([verb[0], str(system), *verb[1:]]) == 1
    assert capsys.readouterr().err == (
        f"{system}: kind-unknown: the file is of another kind (got `system/v1`, expected lane/v1 or run/v1)\n"
    )


def test_what_the_gate_names_is_never_replaced_by_this_machine(samples, capsys, monkeypatch):
    monkeypatch.setenv("ORCH_SAMPLES_CONFIG", "rented.yaml")
    assert main(["run", str(samples)]) == 1
    err = capsys.readouterr().err
    assert "ORCH_SAMPLES_CONFIG says where roles run: rented.yaml\n" in err
    assert "rented.yaml: file-missing: " in err
    assert not Path("runs").exists()


@pytest.mark.parametrize("arguments", [[], ["lane.yaml", "--resume", "last"]])
def test_a_run_needs_a_lane_or_a_bundle(arguments, samples, capsys):
    del samples
    assert main(["run", *arguments]) == 2
    assert "either a lane or --resume BUNDLE is needed" in capsys.readouterr().err


def test_the_tracker_refuses_a_programme_as_orch_does(samples, capsys):
    del samples
    from orchestrator.cli.tracker import main as tracker

    Path("programme.yaml").write_text("orch: programme/v1\nmilestones: {M1: One}\nitmes: {}\n")
    assert tracker(["load", "programme.yaml"]) == 1
    assert "programme.yaml:3:1: key-unknown: " in capsys.readouterr().err
    assert tracker(["no-such-command"]) == 2


def test_doctor_says_what_is_absent_without_an_emulator(samples, capsys, monkeypatch, tmp_path):
    del samples
    monkeypatch.setattr("orchestrator.build.assembler._WHEEL", "no.such.wheel")
    monkeypatch.setenv("PATH", str(tmp_path))
    main(["doctor", "--json"])
    findings = {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["assembler"]["state"] == "absent"
    assert findings["assembler"]["detail"].startswith("pip install 'orch-qualify[device]': ")
    other = {"x86_64": "aarch64-linux", "aarch64": "x86_64-linux"}[platform.machine()]
    assert findings[other]["state"] == "absent"
    assert "emulator-missing" in findings[other]["detail"]


@pytest.mark.parametrize(
    ("losses", "title"),
    [
        ((2.0,), "loss that 1 of 3 updates read"),
        ((2.0, 1.0, 0.5), "loss that each of 3 updates read"),
        ((), "step"),
    ],
)
def test_a_report_says_how_many_updates_were_made(losses, title, capsys, tmp_path):
    from orchestrator.cli.commands.run import report
    from orchestrator.qualify.outcome import LaneOutcome

    outcome = LaneOutcome(
        bundle=tmp_path, lane="first", run_id="", verdict="unknown", grade="host", seal="", plan="",
        system="", steps=(), omitted={}, updates=3, losses=losses, final_loss=None,
    )  # fmt: skip
    report(outcome)
    out = capsys.readouterr().out
    assert out.startswith(title)
    assert "final loss" not in out
    assert "grade: host (no role ran)" in out
