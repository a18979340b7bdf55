from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.cli.boundary import guard
from orchestrator.errors import Label, OrchError, Refusal, RefusedError, UndecidedError, UsageError, Where

REFUSAL = Refusal(
    Label.KEY_UNKNOWN,
    "there is no such key (got colour, expected name)",
    Where("lane.yaml", 3, 1),
    "colour",
    "did you mean `name`?",
)


def raising(error: BaseException) -> Callable[[], int]:
    def run() -> int:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RefusedError([REFUSAL]), 1),
        (OrchError("a node is out of space"), 1),
        (UsageError("no such verb"), 2),
        (UndecidedError("unreachable"), 4),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_exception_has_its_exit_code_and_no_traceback(error, code, capsys):
    assert guard(raising(error), command="orch", as_json=False) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err
    assert "Traceback" not in err


def test_every_refusal_is_one_line_with_its_place(capsys):
    second = Refusal(Label.SYNTAX, "is not YAML (got a tab, expected spaces)", Where("run.yaml"))
    assert guard(raising(RefusedError([REFUSAL, second])), command="orch", as_json=False) == 1
    assert capsys.readouterr().err.splitlines() == [
        "lane.yaml:3:1: key-unknown: there is no such key (got colour, expected name); did you mean `name`?",
        "run.yaml: syntax: is not YAML (got a tab, expected spaces)",
    ]


def test_of_very_many_refusals_the_first_are_printed_and_the_rest_counted(capsys):
    assert guard(raising(RefusedError([REFUSAL] * 5000)), command="orch", as_json=True) == 1
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert lines[0] == lines[99] != lines[100]
    assert lines[100:] == ["and 4900 more; --json, where a verb has it, gives all of them"]
    assert len(json.loads(out)["refusals"]) == 5000


def test_json_gives_refusals_as_one_object(capsys):
    guard(raising(RefusedError([REFUSAL])), command="orch", as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "refusals": [
            {
                "label": "key-unknown",
                "message": REFUSAL.message,
                "path": "lane.yaml",
                "line": 3,
                "column": 1,
                "key": "colour",
                "hint": "did you mean `name`?",
            }
        ]
    }


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (UsageError("x"), "usage"),
        (UndecidedError("x"), "undecided"),
        (OrchError("x"), "failed"),
        (ZeroDivisionError("x"), "bug"),
        (KeyboardInterrupt(), "interrupted"),
    ],
)
def test_json_gives_every_other_error_as_one_object(error, kind, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guard(raising(error), command="orch", as_json=True)
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == kind


@pytest.mark.parametrize("has_cache", [True, False])
def test_a_bug_leaves_its_traceback_in_the_file_that_the_message_names(
    has_cache, capsys, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if not has_cache:
        (tmp_path / "cache").write_text("a file")
    assert guard(raising(ZeroDivisionError("by nothing")), command="orch", as_json=False) == 3
    err = capsys.readouterr().err
    assert "Traceback" not in err
    match = re.search(r"the traceback is in (.+)", err)
    assert match
    log = Path(match[1])
    assert log.parent == (tmp_path / "cache" / "orch" if has_cache else tmp_path)
    assert "ZeroDivisionError: by nothing" in log.read_text()


def test_an_oserror_of_another_file_is_a_bug(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert guard(raising(FileNotFoundError(2, "No such file")), command="orch", as_json=False) == 3
    assert "a bug of ours" in capsys.readouterr().err


COMMANDS = [
    ("orchestrator", ["--help"]),
    ("orchestrator", ["schema"]),
    ("orchestrator", ["schema", "pods"]),
    ("orchestrator", ["validate", "absent.yaml", "--json"]),
    ("orchestrator.cli.tracker", ["status"]),
]


def shell(line: str, module: str, arguments: list[str], cwd: Path, root: Path):
    """A command with its streams as the shell's line sets them."""
    return subprocess.run(
        ["sh", "-c", f'exec "$0" -m "$@" {line}', sys.executable, module, *arguments],
        env={**os.environ, "PYTHONPATH": str(root), "XDG_CACHE_HOME": str(cwd)},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("line", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize(("module", "arguments"), COMMANDS)
def test_streams_that_cannot_be_written_change_no_exit_code(line, module, arguments, tmp_path, pytestconfig):
    plain = shell("", module, arguments, tmp_path, pytestconfig.rootpath)
    done = shell(line, module, arguments, tmp_path, pytestconfig.rootpath)
    assert done.returncode == plain.returncode < 3
    assert "Error" not in done.stderr


def test_a_complaint_that_cannot_be_written_changes_no_exit_code(tmp_path, pytestconfig):
    arguments = ["validate", "absent.yaml", "--json"]
    done = shell("2>/dev/full", "orchestrator", arguments, tmp_path, pytestconfig.rootpath)
    assert done.returncode == 1
    assert json.loads(done.stdout)["refusals"]


@pytest.mark.parametrize(("module", "arguments"), COMMANDS[1:-1])
def test_a_full_disk_under_the_output_is_said_and_is_no_bug(module, arguments, tmp_path, pytestconfig):
    done = shell(">/dev/full", module, arguments, tmp_path, pytestconfig.rootpath)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "orch: cannot write the output: No space left on device"
    assert "bug" not in done.stderr


def test_a_reader_that_leaves_is_no_error(tmp_path, pytestconfig):
    read, write = os.pipe()
    os.close(read)  # the reader is gone before the first byte is written
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", "schema", "lane"],
        stdout=write,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(pytestconfig.rootpath)},
        cwd=tmp_path,
        check=False,
        timeout=60,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")
