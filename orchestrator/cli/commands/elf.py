"""`orch elf`: check executables that orch built, from the file alone."""

from __future__ import annotations

import argparse
from pathlib import Path

from orchestrator.cli.arguments import add_json
from orchestrator.cli.output import complain, print_json, say
from orchestrator.errors import Label


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `verify`."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    verify = actions.add_parser(
        "verify",
        help="static, or as a device role is linked; no segment writable and executable; whole binding; plan",
    )
    verify.add_argument("files", nargs="+", type=Path, metavar="FILE", help="an executable")
    verify.add_argument(
        "--target", choices=("x86_64-linux", "aarch64-linux"), help="what it must be made for"
    )
    verify.add_argument("--plan", metavar="HEX", help="the plan that it must be made for")
    add_json(verify)


def run(args: argparse.Namespace) -> int:
    """Verify each file; 1 if any has a problem."""
    from evidence.files import read_bounded
    from orchestrator.build.elf import describe, verify
    from orchestrator.build.image import MOST_BYTES

    results = []
    for path in args.files:
        try:
            data = read_bounded(path.resolve(), MOST_BYTES)  # a link may lead to it, a pipe not
        except OSError as error:
            said: dict[str, object] = {}
            problems = [f"cannot be read (got: {error.strerror}, expected a file)"]
        else:
            said = describe(data)
            found = verify(data, target=args.target, plan=args.plan, is_device=None)
            problems = [str(problem) for problem in found]
        results.append({"path": str(path), "sound": not problems, "problems": problems, **said})
        for problem in problems:
            complain(f"{path}: {Label.ELF}: {problem}")
        if not problems and not args.json:
            say(f"{path}: sound")
    if args.json:
        print_json({"files": results})
    return 0 if all(result["sound"] for result in results) else 1
