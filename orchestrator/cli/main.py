"""`orch`: the table of verbs, and which module runs each.

Knows the verbs' names and one line about each; must not know what any of them does. The module of a verb is
imported when the verb runs, so that `orch --help` costs nothing but argparse.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol, cast

from orchestrator import __version__
from orchestrator.cli.boundary import guard
from orchestrator.errors import UsageError

VERBS: dict[str, str] = {
    "init": "write a first system, run spec, lane and programme of your own",
    "validate": "say everything that is wrong with files, with its place",
    "schema": "print or write the JSON Schemas of the files",
    "plan": "show what a lane or run spec means, before anything runs",
    "build": "write one executable per role",
    "run": "run a lane: experiments, counter-experiments, verdict, bundle",
    "gate": "hold every lane of a gate to what can be said without machines, and with those that are named",
    "pods": "write a rental down, look at it again, accept what changed",
    "inventory": "show the cards of this machine or of a rental's nodes, and who uses them",
    "profile": "write down what a card is known to hold, as it is seen",
    "judge": "recompute a bundle's verdict from its files alone",
    "stop": "end a lane that runs; what ran is collected and sealed",
    "logs": "show what the roles of the newest launch write",
    "evidence": "verify or show a bundle",
    "checkpoint": "show, verify, compare or export what a run published",
    "elf": "check executables that orch built",
    "clean": "remove the work folders that runs left, here or on nodes",
    "doctor": "say what this machine, or the nodes of a rental, lack",
}

_EPILOG = """\
exit codes: 0 pass or done, 1 fail or refused, 2 usage, 3 a bug of ours, 4 unknown, 130 interrupted twice
`orch help VERB` says more about each; `tracker` keeps the programme."""


class Command(Protocol):
    """What the module of a verb offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the verb's own arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it and give the exit code."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line.

    Args:
        argv: the arguments without the program's name; those of the process by default.

    Returns:
        The exit code (see `--help`).
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    return guard(lambda: _run(arguments), command="orch", as_json="--json" in arguments)


def _run(arguments: list[str]) -> int:
    parser = _top_level()
    top = parser.parse_args(arguments)
    if top.verb == "help":
        top.verb, top.rest = (top.rest[0], ["--help"]) if top.rest else (None, [])
    if top.verb is None:
        parser.print_help()
        return 0
    if top.verb not in VERBS:
        near = difflib.get_close_matches(top.verb, VERBS, n=1)
        raise UsageError(
            f"there is no verb `{top.verb}`; "
            + (f"did you mean `{near[0]}`?" if near else "`orch --help` lists them")
        )
    command = cast("Command", importlib.import_module(f"orchestrator.cli.commands.{top.verb}"))
    verb_parser = _verb_level(top.verb, top.content)
    command.add_arguments(verb_parser)
    return command.run(verb_parser.parse_args(top.rest))


class _Parser(argparse.ArgumentParser):
    """Complaints go through the boundary like every other refusal; an option is written out."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n{self.format_usage().strip()}")


def _top_level() -> argparse.ArgumentParser:
    verbs = "\n".join(f"  {name:<12}{summary}" for name, summary in VERBS.items())
    parser = _Parser(
        prog="orch",
        description=f"Qualify a distributed program on real machines, with evidence.\n\nverbs:\n{verbs}",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"orch {__version__}")
    _add_content(parser, None)
    parser.add_argument("verb", nargs="?", metavar="VERB", help="one of the verbs above")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="its arguments")
    return parser


def _verb_level(verb: str, content: Path | None) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"orch {verb}",
        description=VERBS[verb][0].upper() + VERBS[verb][1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_content(parser, content)
    return parser


def _add_content(parser: argparse.ArgumentParser, default: Path | None) -> None:
    parser.add_argument(
        "--content",
        metavar="DIR",
        type=Path,
        default=default,
        help="the folder that holds specs, roles and lanes, instead of the content that came with orch",
    )
