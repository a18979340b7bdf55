from __future__ import annotations

import json

import pytest

from orchestrator.cli.output import counted, paint, print_json, size_text, table
from orchestrator.cli.report import failed_checks, grade_line, open_checks, steps_table
from orchestrator.qualify.checks import Check, StepOutcome, Verdict

PASSED = Check("states-equal", Verdict.PASS, ("a",), "x", "x")
FAILED = Check(
    "losses-equal", Verdict.FAIL, ("steps/split/1/part-1/coordinator/progress", "plan.json"), "0.5", "0.5625"
)
STEPS = (
    StepOutcome("build", Verdict.PASS, 1, "", (PASSED,), 1.26),
    StepOutcome("split", Verdict.FAIL, 3, "no exit code", (PASSED, FAILED), 12.0),
)


def test_tables_align_text_left_and_numbers_right():
    lines = table(("role", "bytes"), [("root", 5), ("worker", 12345)]).splitlines()
    assert lines == ["role    bytes", "root        5", "worker  12345"]


def test_an_empty_header_is_no_line():
    assert table(("", ""), [("a", "b")], indent="  ") == "  a  b"


def test_nothing_is_painted_off_a_terminal():
    assert paint("pass", "pass") == "pass"


def test_steps_say_how_many_checks_passed():
    lines = steps_table(STEPS).splitlines()
    assert lines[1].split() == ["build", "pass", "1", "1/1", "1.3"]
    assert lines[2].split() == ["split", "fail", "3", "1/2", "12.0", "no", "exit", "code"]


def test_a_failed_check_says_what_was_expected_what_was_there_and_where():
    assert list(failed_checks(STEPS)) == [
        "fail: split: losses-equal",
        "  expected 0.5",
        "  got      0.5625",
        "  see      steps/split/1/part-1/coordinator/progress",
        "  see      plan.json",
    ]


def test_a_check_that_had_nothing_to_judge_is_told_with_its_reason():
    idle = Check("changed-input", Verdict.NOT_APPLICABLE, (), "a refusal", "no data-chunk is declared")
    steps = (*STEPS, StepOutcome("refusals", Verdict.PASS, 1, "", (PASSED, idle)))
    assert list(open_checks(steps)) == ["not-applicable: refusals: changed-input: no data-chunk is declared"]


def test_failures_come_before_what_is_unknown_and_roles_are_folded():
    def check(name, verdict, got):
        return Check(name, verdict, (), "x86_64", got)

    steps = (
        StepOutcome("build", Verdict.UNKNOWN, 1, "", (check("late", Verdict.UNKNOWN, "nothing"),)),
        StepOutcome(
            "preflight",
            Verdict.FAIL,
            1,
            "",
            tuple(
                check(f"worker{n}-target", Verdict.FAIL, "riscv64" if n < 4 else "s390x") for n in range(1, 6)
            ),
        ),
    )
    assert [line for line in failed_checks(steps) if not line.startswith(" ")] == [
        "fail: preflight: worker[1-3]-target",
        "fail: preflight: worker[4-5]-target",
        "unknown: build: late",
    ]


@pytest.mark.parametrize(("attempts", "line"), [(0, "grade: host (no role ran)"), (1, "grade: host")])
def test_a_grade_of_a_run_without_roles_says_so(attempts, line):
    steps = (*STEPS[:1], StepOutcome("refusals", Verdict.UNKNOWN, attempts, "", ()))
    assert grade_line("host", steps) == line


def test_a_table_ends_where_its_width_does():
    lines = table(("step", "reason"), [("build", "it was refused")], width=10).splitlines()
    assert lines == ["step   rea", "build  it"]
    assert table(("step", "reason"), [("build", "it was refused")], width=3).splitlines() == ["ste", "bui"]


def test_one_thing_is_not_many():
    assert [counted(n, "update") for n in (0, 1, 2)] == ["0 updates", "1 update", "2 updates"]


def test_sizes_are_read_by_people():
    assert [size_text(n) for n in (0, 12345, 5 << 20, 3 << 30)] == ["0 B", "12,345 B", "5.0 MiB", "3.0 GiB"]


def test_json_is_one_object(capsys):
    print_json({"a": "ü"})
    assert json.loads(capsys.readouterr().out) == {"a": "ü"}
