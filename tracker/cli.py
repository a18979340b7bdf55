"""The `tracker` command: its arguments, and one boundary for what its commands say and raise.

Knows no reader of programme files and no judge: the console script hands them in. Results go to stdout,
complaints to stderr.

Exit codes: 0 done; 1 refused, or something is wrong; 2 usage; 4 undecided (the database stayed locked).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tracker import commands
from tracker.commands import Answer, Call
from tracker.engine import Engine
from tracker.errors import TrackerError, UsageError
from tracker.programme import GRADES

_MOST = 1_000_000  # lines that a list gives
_KINDS = {1: "failed", 2: "usage", 4: "undecided"}
_RUN = "`last`, a bundle's name, or a run id or either end of one"
_INTERRUPTED = "interrupted; what was being written is rolled back"


def main(argv: Sequence[str], engine: Engine) -> int:
    """Run the `tracker` command.

    Args:
        argv: the arguments, without the program's name.
        engine: what only the engine knows; what it raises is passed on.

    Returns:
        The exit code.
    """
    as_json = "--json" in argv
    try:
        arguments = _parser(engine.version).parse_args(argv, argparse.Namespace(db=None, json=False))
        answer: Answer = arguments.command(Call(arguments, engine))
        for complaint in answer.complaints:
            print(complaint, file=sys.stderr)
        _say(_json(answer.value) if as_json else answer.text)
    except SystemExit as stop:  # argparse leaves so after help and version
        return stop.code if isinstance(stop.code, int) else 2
    except TrackerError as error:
        return _complain(str(error), error.exit_code, as_json=as_json)
    except KeyboardInterrupt:
        return _complain(_INTERRUPTED, 4, as_json=as_json)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader has left: nothing more can be said to it
        return 0
    return answer.code


def _complain(message: str, code: int, *, as_json: bool) -> int:
    print(f"tracker: {message}", file=sys.stderr)
    if as_json:
        _say(_json({"error": {"kind": _KINDS[code], "message": message}}))
    return code


def _json(value: object) -> str:
    """Give JSON as `orch` prints it; where the output cannot hold every character, in ASCII."""
    narrow = (sys.stdout.encoding or "utf-8").lower().replace("-", "") != "utf8"
    return json.dumps(value, indent=2, ensure_ascii=narrow)


def _say(text: str) -> None:
    """Print a result; what the output's encoding cannot hold is escaped, not an error."""
    encoding = sys.stdout.encoding or "utf-8"
    if text:
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)


class _Parser(argparse.ArgumentParser):
    """Complaints go through the boundary like all others, the usage after them; an option is written out."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n{self.format_usage().strip()}")


def _parser(version: str) -> argparse.ArgumentParser:
    common = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument(
        "--db", metavar="URL", help="sqlite:///PATH or a path (default: TRACKER_DB, else the project's)"
    )
    common.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser = _Parser(
        prog="tracker", description="What is planned, what ran, what is proven.", parents=[common]
    )
    parser.add_argument("--version", action="version", version=f"tracker {version}")
    verbs = _Verbs(parser.add_subparsers(required=True, metavar="COMMAND"), common)
    _add_programme(verbs)
    _add_runs(verbs)
    _add_evidence(verbs)
    looked = verbs.add("doctor", commands.doctor, "look for what is wrong; repairs nothing")
    which = looked.add_mutually_exclusive_group()
    which.add_argument(
        "--no-bundles", dest="bundles", action="store_false", help="do not verify the recorded bundles"
    )
    which.add_argument("--judge", action="store_true", help="judge the recorded bundles again, too")
    return parser


@dataclass(frozen=True)
class _Verbs:
    """A place for commands: `tracker ...`, or a group such as `tracker run ...`."""

    to: Any
    common: argparse.ArgumentParser

    def add(self, name: str, command: Callable[[Call], Answer], text: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = self.to.add_parser(
            name, help=text, description=text, parents=[self.common]
        )
        made.set_defaults(command=command)
        return made

    def about(self, name: str, command: Callable[[Call], Answer], text: str) -> argparse.ArgumentParser:
        """Add a command about one run."""
        made = self.add(name, command, text)
        made.add_argument("id", metavar="RUN", help=_RUN)
        return made

    def group(self, name: str, text: str) -> _Verbs:
        made = self.to.add_parser(name, help=text, description=text, parents=[self.common])
        return _Verbs(made.add_subparsers(required=True, metavar="COMMAND"), self.common)


def _add_programme(verbs: _Verbs) -> None:
    loaded = verbs.add("load", commands.load, "make a programme file the one kept; evidence stays")
    loaded.add_argument("file", type=Path)
    verbs.add("status", commands.status, "milestones, runs, and the last runs")
    verbs.add("next", commands.next_items, "open items whose needs are met, and what would prove them")
    shown = verbs.add("show", commands.show, "an item, or a run")
    shown.add_argument("id", metavar="ID", help=f"an item, or a run: {_RUN}")


def _add_runs(verbs: _Verbs) -> None:
    runs = verbs.group("run", "runs: list, show, note, close")
    listed = runs.add("list", commands.run_list, "runs, newest first")
    listed.add_argument("--lane", default="")
    listed.add_argument("--verdict", default="", choices=("pass", "fail", "unknown"))
    listed.add_argument("--grade", default="", choices=GRADES)
    listed.add_argument("--limit", type=_count, default=20, help="at most so many (default: 20)")
    runs.about("show", commands.run_show, "everything known of a run")
    closed = runs.about("close", commands.run_close, "give up a run that was left running; final")
    closed.add_argument("text", metavar="REASON")
    noted = runs.about("note", commands.note, "add a note to a run")
    noted.add_argument("text", metavar="TEXT")
    noted.set_defaults(effect="note")


def _add_evidence(verbs: _Verbs) -> None:
    proofs = verbs.group("evidence", "evidence: list, withdraw, reinstate")
    proofs.add("list", commands.evidence_list, "every run that was attached to an item")
    corrections = {"withdraw": "let a run count no more, for a reason", "reinstate": "let it count again"}
    for effect, text in corrections.items():
        corrected = proofs.about(effect, commands.note, text)
        corrected.add_argument("text", metavar="REASON")
        corrected.set_defaults(effect=effect)
    measured = verbs.about(
        "measure", commands.measure, "add a measurement beside a run; a later one supersedes"
    )
    measured.add_argument("name", metavar="NAME")
    measured.add_argument("value", metavar="VALUE", type=_number)
    measured.add_argument("unit", metavar="UNIT", nargs="?", default="")
    taken = verbs.add("ingest", commands.ingest, "verify bundles, judge them again and record them")
    taken.add_argument(
        "bundles", metavar="BUNDLE", nargs="+", help="its folder, its name, or `last`: the newest one"
    )


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > len(str(_MOST)) or not 1 <= int(text) <= _MOST:
        raise argparse.ArgumentTypeError(f"(got {text[:40]}, expected a whole number, 1 to {_MOST})")
    return int(text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"(got {text[:40]}, expected a number)") from None
