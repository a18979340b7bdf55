"""`orch evidence`: verify that a bundle is what was sealed, or show what it says."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.cli.arguments import add_bundle, add_json
from orchestrator.cli.output import complain, plain, print_json, say, size_text, table
from orchestrator.cli.project import find_bundle, require_sealed, unsealed
from orchestrator.errors import OrchError

_FACTS = ("lane", "run_id", "verdict", "grade", "started", "ended", "system", "plan", "content_sha256")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `verify` and `show`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    verify = actions.add_parser("verify", help="check every file against the seal, the sums and the stream")
    show = actions.add_parser("show", help="what ran, what came of it, and which files say so")
    add_bundle(verify)
    add_bundle(show)
    verify.add_argument("--seal", metavar="HEX", type=_digest, help="the seal that you were told")
    verify.add_argument(
        "--head", metavar="HEX", type=_digest, help="the stream's head that was kept elsewhere"
    )
    add_json(verify)
    add_json(show)


def run(args: argparse.Namespace) -> int:
    """Do one or the other."""
    bundle = find_bundle(args.bundle)
    return _show(args, bundle) if args.action == "show" else _verify(args, bundle)


def _verify(args: argparse.Namespace, bundle: Path) -> int:
    from evidence.digest import sha256_file
    from evidence.verify import verify

    problems = verify(bundle, seal=args.seal, head=args.head)
    seal = None if problems else sha256_file(bundle / "qualification.json")
    if args.json:
        found = [{"name": each.name, "kind": str(each.kind), "message": each.message} for each in problems]
        print_json({"bundle": str(bundle), "sound": not problems, "seal": seal, "problems": found})
    if (why := unsealed(bundle)) and not (bundle / "qualification.json").exists():
        complain(f"orch: {why}")  # every file is missing from the listings that are not there: no news
    else:
        for each in problems:
            complain(f"{bundle / each.name}: {each.kind}: {each.message}")
    if not problems and not args.json:
        say(f"sound: {bundle}\nseal: {seal}")
    return 1 if problems else 0


def _show(args: argparse.Namespace, bundle: Path) -> int:
    from evidence.digest import sha256_file
    from evidence.verify import read_qualification

    require_sealed(bundle)
    try:
        record = read_qualification(bundle)
    except (OSError, ValueError) as error:
        raise OrchError(f"{bundle / 'qualification.json'}: cannot be read: {error}") from error
    seal = sha256_file(bundle / "qualification.json")
    if args.json:
        print_json({"bundle": str(bundle), "seal": seal, **record})
        return 0
    try:
        lines = _lines(record, seal)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise OrchError(f"{bundle / 'qualification.json'} is not that of a lane run: {error!r}") from error
    say("\n".join(lines))
    return 0


def _lines(record: Mapping[str, Any], seal: str) -> list[str]:
    """Lay the record out; raises whatever a record of another form leads to."""
    stream, files = record["stream"], record["files"]
    facts = {name: record[name] for name in _FACTS}
    facts["seal"] = seal
    facts["stream"] = f"{stream['records']} records, head {stream['head']}"
    return [
        *(f"{name:<16}{plain(value)}" for name, value in facts.items()),
        "",
        _steps(record["steps"]),
        "",
        f"{len(files)} files, {size_text(sum(file['size'] for file in files))}",
    ]


def _steps(steps: list[dict[str, Any]]) -> str:
    rows = [
        (
            step["name"],
            step["verdict"],
            step["attempts"],
            f"{sum(check['verdict'] == 'pass' for check in step['checks'])}/{len(step['checks'])}",
            step["reason"],
        )
        for step in steps
    ]
    return table(("step", "verdict", "attempts", "checks", "reason"), rows)


def _digest(text: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise argparse.ArgumentTypeError(f"no digest (got {text!r}, expected 64 lower-case hex digits)")
    return text
