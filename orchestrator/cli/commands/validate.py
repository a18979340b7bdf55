"""`orch validate`: everything that is wrong with files and with what they refer to, each with its place."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.arguments import add_json
from orchestrator.cli.boundary import print_refusals, refusal_json
from orchestrator.cli.output import print_json, say
from orchestrator.cli.project import find_project
from orchestrator.errors import Refusal
from orchestrator.redact import Secrets

if TYPE_CHECKING:
    from orchestrator.cli import plan_cards


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the files."""
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="a file of any kind, YAML or TOML"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Validate; 1 if anything is refused."""
    from orchestrator.plan.check import validate

    refusals = validate(args.files)
    cards = {} if refusals else _with_cards(args.files)
    refusals = refusals or tuple(dict.fromkeys(each for card in cards.values() for each in card.refusals))
    # once nothing else is wrong: which files a bundle would hold is known only then
    refusals = refusals or _secrets_in(args.files)
    if args.json:
        files = [str(path) for path in args.files]
        print_json(
            {
                "files": files,
                "refusals": [refusal_json(refusal) for refusal in refusals],
                "video_memory": {str(path): card.as_json() for path, card in cards.items()},
            }
        )
    print_refusals(refusals)
    if not refusals and not args.json:
        for path in args.files:
            say(f"{path}: valid")
            if path in cards:
                say(cards[path].text())
    return 1 if refusals else 0


def _with_cards(paths: Iterable[Path]) -> dict[Path, plan_cards.Admitted]:
    """Give what is known, before any machine is, of the files that pair roles with cards."""
    from orchestrator.cli.plan_cards import admitted
    from orchestrator.spec.lane import LaneSpec
    from orchestrator.spec.read import kind_of, read_any_lane, read_run
    from orchestrator.spec.run import RunSpec

    found = {}
    for path in paths:
        kind = kind_of(path)
        lane = read_any_lane(path) if kind == "lane/v1" else None
        run = lane.run if isinstance(lane, LaneSpec) else read_run(path) if kind == "run/v1" else None
        if isinstance(run, RunSpec) and run.has_devices:
            found[path] = admitted(run, lane if isinstance(lane, LaneSpec) else None)
    return found


def _secrets_in(paths: Iterable[Path]) -> tuple[Refusal, ...]:
    """Give the secrets that files hold, they or what they refer to."""
    from orchestrator.spec.read import files

    every = dict.fromkeys(found for path in paths for found in files(path))
    return Secrets.here(find_project(quiet=True).secrets).refusals(every)
