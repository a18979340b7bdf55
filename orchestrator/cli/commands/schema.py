"""`orch schema`: the JSON Schemas of the files that users write, for editors."""

from __future__ import annotations

import argparse
from pathlib import Path

from orchestrator.cli.output import say
from orchestrator.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the kind, or the folder."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument("kind", nargs="?", metavar="KIND", help="print the schema of this kind of file")
    what.add_argument("--write", type=Path, metavar="DIR", help="write all of them as DIR/<kind>.schema.json")


def run(args: argparse.Namespace) -> int:
    """Print one schema, write all, or list the kinds."""
    from orchestrator.spec.schema import MODELS, text, write

    if args.write:
        try:
            args.write.mkdir(parents=True, exist_ok=True)
            paths = write(args.write)
        except OSError as error:
            raise UsageError(f"{args.write}: cannot be written: {error.strerror}") from error
        for path in paths:
            say(str(path))
    elif args.kind is None:
        for kind in MODELS:
            say(kind)
    elif args.kind in MODELS:
        say(text(args.kind).rstrip("\n"))
    else:
        raise UsageError(
            f"there is no such kind of file (got {args.kind}, expected one of {', '.join(MODELS)})"
        )
    return 0
