"""A program that is told by its environment alone, publishes a folder, and runs as two roles."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from lane_workshop import Workshop

from orchestrator.qualify.judge import judge_bundle

SCRIPT = """
import hashlib, json, os, pathlib, sys

told = {name: value for name, value in os.environ.items() if name.startswith("ORCH_")}
place = pathlib.Path(told["ORCH_CHECKPOINT_OUT"])
numbers, log = [], b""
if told["ORCH_CHECKPOINT_IN"]:
    came = pathlib.Path(told["ORCH_CHECKPOINT_IN"])
    try:
        numbers, log = json.loads((came / "numbers.json").read_bytes()), (came / "log").read_bytes()
        if (came / "sum").read_bytes() != hashlib.sha256(json.dumps(numbers).encode() + log).digest():
            raise ValueError("sum")
    except (OSError, ValueError, TypeError) as error:
        sys.exit(f"damaged: {error}")
with open(told["ORCH_PROGRESS"], "a") as progress:
    while len(numbers) < int(told["ORCH_UPDATES"]):
        numbers.append(len(numbers) * int(os.environ["FACTOR"]))
        log += f"{told['ORCH_ROLE']} {len(numbers)} {'.' * 300}\\n".encode()
        progress.write(f"{len(numbers)} {numbers[-1]}\\n")
made = place.with_name("making")
made.mkdir()
(made / "numbers.json").write_bytes(json.dumps(numbers).encode())
(made / "log").write_bytes(log)
(made / "sum").write_bytes(hashlib.sha256(json.dumps(numbers).encode() + log).digest())
made.rename(place)
"""
RUN = """orch: run/v1
name: counting
roles: ["teller[1-2]"]
program:
  argv: [%s, count.py]
  files: [count.py]
  environment: {FACTOR: "3"}
  checkpoint: files
  refuses: {checkpoint-chunk: {exit: 1, stderr: "^damaged"}}
pairings: {"teller[1-2]": {target: command}}
"""
LANE = """orch: lane/v1
name: counting
run: run.yaml
updates: 6
split: 4
deadlines: {connect: 5s, round: 5s, run: 60s}
"""


def lane(workshop: Workshop, *changes: tuple[str, str]) -> str:
    text = SCRIPT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (workshop.folder / "count.py").write_text(text)
    (workshop.folder / "run.yaml").write_text(RUN % sys.executable)
    (workshop.folder / "lane.yaml").write_text(LANE)
    return "lane.yaml"


def failed(result: dict[str, Any]) -> dict[str, str]:
    return {
        check["name"]: check["got"]
        for step in result["steps"]
        for check in step["checks"]
        if check["verdict"] not in ("pass", "not-applicable")
    }


def test_a_folder_from_each_of_two_roles(workshop: Workshop) -> None:
    code, result = workshop.run(lane(workshop))
    assert code == 0, failed(result)
    bundle = Path(result["bundle"])
    part = bundle / "steps/split/1/part-2"
    for role in ("teller1", "teller2"):
        assert sorted(p.name for p in (part / role / "checkpoint/state").iterdir()) == [
            "log",
            "numbers.json",
            "sum",
        ]
    assert [path.name for path in bundle.glob("steps/refusals/1/changed-byte*")] != []
    assert (bundle / "steps/refusals/1/changed-byte-3").is_dir()
    assert workshop.orch("judge", result["bundle"]).returncode == 0
    assert workshop.strays() == []


RENAME, DAMAGED = "made.rename(place)", 'sys.exit(f"damaged: {error}")'
LOG, LINK = '(made / "log").write_bytes(log)', '(made / "log").symlink_to("/etc/passwd")'
FORGETS = [
    ('(came / "log").read_bytes()\n', 'b""\n'),
    (".encode() + log).digest():", ".encode() + (came / 'log').read_bytes()).digest():"),
]
IN_PLACE = [('place.with_name("making")', "place"), (f"{RENAME}\n", "")]
NOISE = [("{'.' * 300}", "{os.getpid():0300}")]
PARTED = "not deterministic: first at update 1: teller1: log at byte "
LOST = "state is lost at resume: first at update 5: teller1: log at byte 8: 35, expected 31"


@pytest.mark.parametrize(
    ("changes", "name", "said"),
    [
        (NOISE, "deterministic", PARTED),
        (FORGETS, "part-2-equals-uninterrupted", LOST),
        (IN_PLACE, "cut-left-nothing-torn", "teller1: torn: "),
        ([(LOG, LINK)], "base-published", "teller1: not plain files: "),
        ([("{numbers[-1]}", "nan")], "base-progress", "teller1: line 1: the loss is not finite (nan)"),
        ([(DAMAGED, "numbers = []")], "changed-byte-refused", "teller1: exit 0; "),
        ([(DAMAGED, 'sys.exit("oh")')], "changed-byte-refused", "teller1: exit 1, 'oh'; "),
        ([(RENAME, "pass")], "base-published", "teller1 published nothing under {out}"),
        ([(RENAME, f"{RENAME}; sys.exit(9)")], "base-ended", "teller1: exit 9, "),
    ],
    ids=["noise", "forgets", "in place", "link", "nan", "goes on", "says else", "silent", "exit"],
)
def test_what_is_wrong_is_told(
    changes: list[tuple[str, str]], name: str, said: str, workshop: Workshop
) -> None:
    code, result = workshop.run(lane(workshop, *changes))
    wrong = failed(result)
    assert code == 1, wrong
    assert wrong[name].startswith(said), wrong
    judgement = judge_bundle(Path(result["bundle"]))
    assert (judgement.verdict, judgement.agrees) == ("fail", True)
    assert workshop.strays() == []
