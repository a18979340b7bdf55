"""Programs of the user's own that leave what no program should: a failed check or a label, never a pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from lane_workshop import Workshop
from test_own_files import LANE, failed

from orchestrator.qualify.judge import judge_bundle

SCRIPT = """#!/bin/sh
set -eu
if [ -n "$ORCH_CHECKPOINT_IN" ]; then
    expected=$(cat "$ORCH_CHECKPOINT_IN/number" && echo .)
    case $expected in "number "[0-9]" whole
.") ;; *) echo damaged >&2; exit 3 ;; esac
fi
work=$PWD made=$PWD/checkpoint/made
mkdir "$made"
echo "number $ORCH_UPDATES whole" >"$made/number"
@cheat@
[ ! -d "$made" ] || mv "$made" "$ORCH_CHECKPOINT_OUT"
"""
RUN = """orch: run/v1
name: counting
roles: [teller]
program:
  argv: [./count.sh]
  files: [count.sh]
  checkpoint: files
  refuses: {checkpoint-chunk: {exit: 3, stderr: damaged}}
pairings: {teller: {target: command}}
"""
# a cheat shows in the first launch of all
AT_ONCE = "omit: {uninterrupted: shown elsewhere, split: shown elsewhere, evaluate: shown elsewhere}\n"
NOISE = "head -c 16 /dev/urandom"
NEWLINE = (
    ': >"$made/a"; d="$made/a\n"; mkdir -p "$d$work/checkpoint/state";'
    f'{NOISE} >"$d$work/checkpoint/state/number"'
)
# a file that would take another's place in the bundle; a name that hides behind two others
HIDES = {
    "half-written": (f'{NOISE} >"$made/z"; echo z >"$made/.z.part"', "checkpoint/state/.z.part"),
    "newline": (NEWLINE, "checkpoint/state/a"),
    "escape": (f'{NOISE} >"$made/$(printf "z\\033[2J")"', "checkpoint/state/z\\x1b[2J"),
    "backslash": (f'{NOISE} >"$made/z\\\\z"', "checkpoint/state/z\\z"),
}
NOT_PLAIN = {
    "links": ('ln -s /etc "$made/etc"', "checkpoint/state/etc"),
    "pipe": ('mkfifo "$made/pipe"', "checkpoint/state/pipe"),
    "terabyte": ('truncate -s 1T "$made/large"', "checkpoint/state/large (no regular file, or more than "),
    "output": ("truncate -s 1T job/stdout", "job/stdout (no regular file, or more than "),
    "output elsewhere": ("rm job/stderr; ln -s /etc/hostname job/stderr", "job/stderr (no regular file, "),
    "progress": ('mkfifo "$ORCH_PROGRESS"', "progress (no regular file, or more than "),
    "long progress": ('truncate -s 1T "$ORCH_PROGRESS"', "progress (no regular file, or more than "),
    "link itself": ('rm -r "$made"; ln -s /etc "$ORCH_CHECKPOINT_OUT"', "checkpoint/state"),
}
NOTES = {
    "exit": "rm -f job/exit; mkfifo job/exit; sleep 1; rm job/exit",
    "exit code": "head -c 9000 /dev/zero | tr '\\0' 1 >job/exit; sleep 1",
    "process": "echo '99999999999999999999 1 x' >job/pid; sleep 1",
}


def run(
    workshop: Workshop, cheat: str, spec: str = RUN, more: str = AT_ONCE
) -> tuple[int, dict[str, object]]:
    (workshop.folder / "count.sh").write_text(SCRIPT.replace("@cheat@", cheat))
    (workshop.folder / "run.yaml").write_text(spec)
    (workshop.folder / "lane.yaml").write_text(
        LANE.replace("updates: 6", "updates: 4").replace("4\nd", "2\nd") + more
    )
    return workshop.run("lane.yaml")


def test_without_a_cheat_it_passes(workshop: Workshop) -> None:
    code, result = run(workshop, ":", more="")
    assert code == 0, failed(result)


@pytest.mark.parametrize(("cheat", "named"), [*HIDES.values(), *NOT_PLAIN.values()], ids=[*HIDES, *NOT_PLAIN])
def test_what_no_bundle_can_hold_is_named_and_fails(cheat: str, named: str, workshop: Workshop) -> None:
    code, result = run(workshop, cheat)
    assert code == 1, result
    assert f"teller: not plain files: {named}" in failed(result)["base-published"]
    judgement = judge_bundle(Path(str(result["bundle"])))
    assert (judgement.verdict, judgement.agrees) == ("fail", True)
    assert workshop.strays() == []


def test_a_secret_in_a_name_is_kept_nowhere(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "canary-0123456789"
    monkeypatch.setenv("API_TOKEN", secret)
    spec = "inherit: [API_TOKEN]\n  checkpoint"
    code, result = run(workshop, 'echo >"$made/$API_TOKEN"', RUN.replace("checkpoint", spec, 1))
    assert code == 1
    assert failed(result)["base-published"] == "teller: not plain files: checkpoint/state/[redacted]"
    for path in Path(str(result["bundle"])).rglob("*"):
        assert secret not in str(path)
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("cheat", NOTES.values(), ids=NOTES)
def test_who_writes_in_the_runners_notes_decides_nothing(cheat: str, workshop: Workshop) -> None:
    code, result = run(workshop, cheat)
    assert code == 4, result
    assert "error" in result or result["verdict"] == "unknown"
    assert not list(Path(workshop.folder).rglob("crash.txt"))
