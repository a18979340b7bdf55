"""The commands as a user meets them, in a project that `orch init` made: run, judge, verify, show, track."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class User:
    """A user with a home, a temporary folder and a terminal of their own."""

    home: Path
    checkout: Path
    cache: Path

    @property
    def project(self) -> Path:
        return self.home / "project"

    def __call__(self, *arguments: str, module: str = "orchestrator") -> subprocess.CompletedProcess[str]:
        return subprocess.run(**self._start(module, arguments), stderr=subprocess.PIPE, check=False)

    def at_a_terminal(self, *arguments: str) -> tuple[subprocess.CompletedProcess[str], str]:
        """Standard error is a terminal, standard output a pipe; gives what the terminal was sent, too."""
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-c", _READ_ALL], stdin=ours, stdout=subprocess.PIPE
        ) as reader:
            os.close(ours)
            try:
                start = self._start("orchestrator", arguments, TERM="xterm")
                done = subprocess.run(**start, stderr=theirs, check=False)
            finally:
                os.close(theirs)
            assert reader.stdout is not None
            shown = reader.stdout.read().decode()
        return done, shown

    def _start(self, module: str, arguments: tuple[str, ...], **env: str):
        temporary = self.home / "tmp"
        temporary.mkdir(exist_ok=True)
        own = {
            "PYTHONPATH": str(self.checkout),
            "XDG_CACHE_HOME": str(self.cache),
            "TMPDIR": str(temporary),
        }
        inherited = {
            name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "TRACKER_DB"}
        }
        return {
            "args": [sys.executable, "-m", module, *arguments],
            "cwd": self.project if self.project.exists() else self.home,
            "env": {**inherited, "TERM": "dumb", **own, **env},
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "text": True,
            "timeout": 300,
        }


# A terminal must be read while it is written to; the end of one reads as an error.
_READ_ALL = """
import os, sys
try:
    while data := os.read(0, 65536):
        sys.stdout.buffer.write(data)
except OSError:
    pass
"""


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config, cache: Path) -> User:
    made = User(tmp_path_factory.mktemp("user"), pytestconfig.rootpath, cache)
    done = made("init", "project")
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def ran(user: User) -> dict[str, object]:
    """One lane run with `--json`, watched at a terminal."""
    assert user("load", "programme.yaml", module="orchestrator.cli.tracker").returncode == 0
    done, shown = user.at_a_terminal("run", "lanes/first.yaml", "--json")
    assert done.returncode == 0, shown
    return {**json.loads(done.stdout), "shown": shown}


def test_the_first_lane_passes_and_says_so(user, ran):
    assert (ran["verdict"], ran["grade"], ran["omitted"]) == ("pass", "host", {})
    assert Path(ran["bundle"]).parent == user.project / "runs"
    assert [step["name"] for step in ran["steps"]] == [
        "preflight", "build", "refusals", "uninterrupted", "split", "host-shadow", "evaluate", "record"
    ]  # fmt: skip
    assert len(ran["losses"]) == 30
    assert ran["updates"] == 30
    # each loss was read before its update; the last one's is what the evaluation gives
    assert ran["final_loss"] < ran["losses"][-1] < ran["losses"][0]


def test_the_terminal_showed_every_step_and_its_lines_were_taken_away(ran):
    for step in ("preflight", "build", "refusals", "uninterrupted", "split", "evaluate"):
        assert step in ran["shown"]
    assert "\x1b[?25h" in ran["shown"]  # the cursor is back


def test_the_seal_verifies_and_another_one_does_not(user, ran):
    done = user("evidence", "verify", "last", "--seal", ran["seal"], "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {
        "bundle": ran["bundle"],
        "sound": True,
        "seal": ran["seal"],
        "problems": [],
    }
    other = user("evidence", "verify", "last", "--seal", "0" * 64)
    assert (other.returncode, other.stdout) == (1, "")
    assert "qualification.json: seal:" in other.stderr


def test_judging_again_agrees_without_a_machine(user, ran):
    done = user("judge", "last", "--json")
    assert done.returncode == 0
    judged = json.loads(done.stdout)
    assert (judged["agrees"], judged["verdict"]) == (True, "pass")
    assert judged["steps"] == ran["steps"]


def test_show_says_what_ran(user, ran):
    shown = json.loads(user("evidence", "show", "last", "--json").stdout)
    assert (shown["seal"], shown["lane"], shown["plan"]) == (ran["seal"], "first", ran["plan"])
    assert ran["seal"] in user("evidence", "show", "last").stdout


def test_the_plan_printed_before_is_the_plan_that_ran(user, ran):
    planned = json.loads(user("plan", "lanes/first.yaml", "--json").stdout)
    assert (planned["plan"], planned["system"]) == (ran["plan"], ran["system"])
    assert [step["name"] for step in planned["steps"]] == [step["name"] for step in ran["steps"]]


def test_a_sealed_bundle_is_not_run_again(user, ran):
    done = user("run", "--resume", "last", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["seal"] == ran["seal"]
    assert len(list((user.project / "runs").glob("*/stream.jsonl"))) == 1


def test_a_lesser_grade_than_required_exits_1_and_says_so(user, ran):
    del ran
    done = user("run", "--resume", "last", "--require", "physical")
    assert done.returncode == 1
    assert "the evidence is of grade host, and physical is required" in done.stderr
    assert "verdict: pass" in done.stdout.splitlines()
    assert user("run", "--resume", "last", "--require", "emulated").returncode == 0


def test_a_person_reads_four_closing_lines(user, ran):
    done = user("run", "--resume", "last")
    assert f"{ran['bundle']} was sealed before: nothing runs again" in done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "loss that each of 30 updates read"
    assert f"final loss: {ran['final_loss']:.6g}" in lines
    assert lines[-4:] == ["verdict: pass", "grade: host", f"bundle: {ran['bundle']}", f"seal: {ran['seal']}"]


def test_the_tracker_has_the_proof(user, ran):
    del ran
    status = user("show", "A1", "--json", module="orchestrator.cli.tracker")
    assert status.returncode == 0, status.stderr
    assert json.loads(status.stdout)["item"]["status"] == "verified"


def test_nothing_is_left_and_clean_says_so(user, ran):
    del ran
    done = user("clean")
    assert (done.returncode, done.stdout) == (0, "nothing is left\n")


def test_a_bundle_that_is_not_sealed_is_said_in_a_sentence(user, ran, tmp_path):
    open_one = tmp_path / "open"
    shutil.copytree(ran["bundle"], open_one)
    (open_one / "qualification.json").unlink()
    (open_one / "SHA256SUMS").unlink()
    for verb in (["evidence", "verify"], ["evidence", "show"], ["judge"]):
        done = user(*verb, str(open_one))
        assert (done.returncode, done.stdout) == (1, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"orch: {open_one} is not sealed: its run still goes on, or was interrupted; ")
        assert f"`orch run --resume {open_one}`" in line


def test_a_changed_bundle_is_neither_sound_nor_judged(user, ran, tmp_path):
    changed = tmp_path / "changed"
    shutil.copytree(ran["bundle"], changed)
    with (changed / "plan.json").open("ab") as file:
        file.write(b" ")
    verified = user("evidence", "verify", str(changed), "--json")
    assert verified.returncode == 1
    assert "plan.json" in {problem["name"] for problem in json.loads(verified.stdout)["problems"]}
    judged = user("judge", str(changed))
    assert (judged.returncode, judged.stdout) == (1, "")
    assert "nothing is judged" in judged.stderr


def test_a_refusal_at_a_terminal_has_its_line_and_a_caret(user):
    wrong = user.project / "wrong.yaml"
    wrong.write_text("orch: lane/v1\nname: first\nupdatse: 30\n", encoding="utf-8")
    done, shown = user.at_a_terminal("validate", "wrong.yaml")
    assert (done.returncode, done.stdout) == (1, "")
    assert "updatse: 30" in shown
    assert "^" in shown
    plain = user("validate", "wrong.yaml")
    assert "^" not in plain.stderr
    assert "\x1b" not in plain.stderr
    assert any(line.startswith("wrong.yaml:3:1: key-unknown: ") for line in plain.stderr.splitlines())
