"""The `tracker` command: its arguments, one function per command, one boundary for errors.

Knows no reader of programme files: the console script passes one. Imports the database library only inside
the commands, so that help stays fast. Results go to stdout, complaints to stderr.

Exit codes: 0 done; 1 refused, or something is wrong; 2 usage; 4 undecided (the database stayed locked).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracker.errors import BundleError, TrackerError
from tracker.programme import GRADES, Programme

if TYPE_CHECKING:
    from tracker.store import Store


_MOST = 1_000_000  # lines that a list gives


@dataclass(frozen=True)
class Answer:
    """What a command says: as text, as JSON, and by its exit code."""

    text: str
    value: Any
    code: int = 0


@dataclass(frozen=True)
class Call:
    """A command's arguments, with what the console script gave."""

    arguments: argparse.Namespace
    read_programme: Callable[[Path], Programme]
    url: str | None

    def store(self, *, create: bool = False) -> Store:
        """Open the database that was asked for."""
        from tracker.store import default_url, open_store

        return open_store(self.arguments.db or default_url(self.url), create=create)


def main(
    argv: Sequence[str], read_programme: Callable[[Path], Programme], default_db: str | None = None
) -> int:
    """Run the `tracker` command.

    Args:
        argv: the arguments, without the program's name.
        read_programme: reads a programme file; what it raises is passed on.
        default_db: the database where neither `--db` nor `TRACKER_DB` names one.

    Returns:
        The exit code.
    """
    try:
        arguments = _parser().parse_args(argv, argparse.Namespace(db=None, json=False))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    try:
        answer: Answer = arguments.command(Call(arguments, read_programme, default_db))
        _say(json.dumps(answer.value) if arguments.json else answer.text)
    except TrackerError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted; what was being written is rolled back", file=sys.stderr)
        return 4
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader has left: nothing more can be said to it
        return 0
    return answer.code


def _say(text: str) -> None:
    """Print a result; what the output's encoding cannot hold is escaped, not an error."""
    encoding = sys.stdout.encoding or "utf-8"
    if text:
        print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)


def _load(call: Call) -> Answer:
    from tracker.load import load

    done = load(call.store(create=True), call.read_programme(call.arguments.file))
    lines = [f"{done.milestones} milestones, {done.items} items"]
    for word, names in (
        ("verified by recorded runs", done.verified),
        ("no longer verified: the evidence does not meet the new proof", done.reopened),
        ("no longer in the programme, kept", done.unlisted),
    ):
        lines.extend([f"{word}: {', '.join(names)}"] if names else [])
    return Answer("\n".join(lines), asdict(done))


def _status(call: Call) -> Answer:
    from tracker import pages, query

    found = query.status(call.store())
    return Answer(pages.status(found), asdict(found))


def _next(call: Call) -> Answer:
    from tracker import lacking, pages

    found = lacking.next_items(call.store())
    return Answer(pages.ready(found), {"items": [asdict(each) for each in found]})


def _show(call: Call) -> Answer:
    from tracker import pages, query

    found = query.item(call.store(), call.arguments.id)
    if found is None:
        return _run_show(call)
    item, attached = found
    return Answer(
        pages.item(item, attached), {"item": asdict(item), "evidence": [asdict(e) for e in attached]}
    )


def _run_list(call: Call) -> Answer:
    from tracker import pages, query

    wanted = call.arguments
    found = query.runs(
        call.store(), lane=wanted.lane, verdict=wanted.verdict, grade=wanted.grade, limit=wanted.limit
    )
    return Answer(pages.runs(found), {"runs": [asdict(each) for each in found]})


def _run_show(call: Call) -> Answer:
    from tracker import pages, query

    found = query.run(call.store(), call.arguments.id)
    return Answer(pages.run(found), asdict(found))


def _run_close(call: Call) -> Answer:
    from tracker import query, record

    store = call.store()
    run = query.run_id(store, call.arguments.id)
    record.close_run(store, run, call.arguments.text)
    return Answer(f"{run} interrupted", {"run_id": run, "state": "interrupted"})


def _note(call: Call) -> Answer:
    from tracker import beside, query

    store = call.store()
    run = query.run_id(store, call.arguments.id)
    beside.note(store, run, call.arguments.text, call.arguments.effect)
    return Answer(
        f"{run} {call.arguments.effect}: {call.arguments.text}",
        {"run_id": run, "effect": call.arguments.effect},
    )


def _evidence_list(call: Call) -> Answer:
    from tracker import pages, query

    found = query.evidence(call.store())
    return Answer(pages.evidence(found), {"evidence": [asdict(each) for each in found]})


def _measure(call: Call) -> Answer:
    from tracker import beside, query

    store, given = call.store(), call.arguments
    run = query.run_id(store, given.id)
    revision = beside.measure(store, run, given.name, given.value, given.unit)
    value = {
        "run_id": run,
        "name": given.name,
        "value": given.value,
        "unit": given.unit,
        "revision": revision,
    }
    return Answer(
        f"{run} {given.name} = {given.value} {given.unit}".rstrip() + f" (revision {revision})", value
    )


def _ingest(call: Call) -> Answer:
    from tracker.record import ingest

    store = call.store(create=True)
    lines, done, refused = [], [], []
    for bundle in call.arguments.bundles:
        try:
            recorded = ingest(store, bundle)
        except BundleError as error:
            print(error, file=sys.stderr)
            refused.append({"bundle": str(bundle), "problems": error.problems})
            continue
        proves = f", evidence for {', '.join(recorded.items)}" if recorded.items else ""
        known = "" if recorded.new else " (known)"
        lines.append(f"{recorded.run_id} {recorded.lane} {recorded.verdict} {recorded.grade}{known}{proves}")
        done.append(asdict(recorded))
    return Answer("\n".join(lines), {"recorded": done, "refused": refused}, 1 if refused else 0)


def _doctor(call: Call) -> Answer:
    from tracker.doctor import examine

    found = examine(call.store(), bundles=call.arguments.bundles)
    text = "\n".join(f"{finding.subject}: {finding.message}" for finding in found) or "healthy"
    return Answer(text, {"findings": [asdict(finding) for finding in found]}, 1 if found else 0)


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument(
        "--db", metavar="URL", help="sqlite:///PATH or a path (default: TRACKER_DB, else the project's)"
    )
    common.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser = argparse.ArgumentParser(
        "tracker", description="What is planned, what ran, what is proven.", parents=[common]
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(to: Any, name: str, command: Callable[[Call], Answer], text: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = to.add_parser(name, help=text, description=text, parents=[common])
        made.set_defaults(command=command)
        return made

    def group(name: str, text: str) -> Any:
        made = commands.add_parser(name, help=text, description=text, parents=[common])
        return made.add_subparsers(required=True, metavar="COMMAND")

    def about(to: Any, name: str, command: Callable[[Call], Answer], text: str) -> argparse.ArgumentParser:
        made = add(to, name, command, text)
        made.add_argument("id", metavar="RUN", help="a run id, or the beginning of one")
        return made

    add(commands, "load", _load, "make a programme file the one kept; evidence stays").add_argument(
        "file", type=Path
    )
    add(commands, "status", _status, "milestones, runs, and the last runs")
    add(commands, "next", _next, "open items whose needs are met, and what would prove them")
    add(commands, "show", _show, "an item, or a run").add_argument(
        "id", metavar="ID", help="an item or a run"
    )
    runs = group("run", "runs: list, show, note, close")
    listed = add(runs, "list", _run_list, "runs, newest first")
    listed.add_argument("--lane", default="")
    listed.add_argument("--verdict", default="", choices=("pass", "fail", "unknown"))
    listed.add_argument("--grade", default="", choices=GRADES)
    listed.add_argument("--limit", type=_count, default=20, help="at most so many (default: 20)")
    about(runs, "show", _run_show, "everything known of a run")
    about(runs, "close", _run_close, "give up a run that was left running; final").add_argument(
        "text", metavar="REASON"
    )
    noted = about(runs, "note", _note, "add a note to a run")
    noted.add_argument("text", metavar="TEXT")
    noted.set_defaults(effect="note")
    proofs = group("evidence", "evidence: list, withdraw, reinstate")
    add(proofs, "list", _evidence_list, "every run that was attached to an item")
    for effect, text in (
        ("withdraw", "let a run count no more, for a reason"),
        ("reinstate", "let it count again"),
    ):
        corrected = about(proofs, effect, _note, text)
        corrected.add_argument("text", metavar="REASON")
        corrected.set_defaults(effect=effect)
    measured = about(commands, "measure", _measure, "add a measurement beside a run; a later one supersedes")
    measured.add_argument("name", metavar="NAME")
    measured.add_argument("value", metavar="VALUE", type=float)
    measured.add_argument("unit", metavar="UNIT", nargs="?", default="")
    add(commands, "ingest", _ingest, "verify bundles and record them").add_argument(
        "bundles", metavar="BUNDLE", type=Path, nargs="+"
    )
    add(commands, "doctor", _doctor, "look for what is wrong; repairs nothing").add_argument(
        "--no-bundles", dest="bundles", action="store_false", help="do not verify the recorded bundles"
    )
    return parser


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= _MOST:
        raise argparse.ArgumentTypeError(f"(got {value}, expected 1 to {_MOST})")
    return value
