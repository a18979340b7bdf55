"""`orch build`: one executable per role, its binding section zeroed, written beside each other."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from evidence.files import part_name, write_whole
from orchestrator.cli.arguments import add_json, content_of, find_spec
from orchestrator.cli.output import print_json, say, table
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.spec.program import CommandRunSpec


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file and the folder."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a run spec or a lane")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="DIR", help="where <role>.elf go; made if absent"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Build and write; what is refused is refused before a byte is built."""
    from orchestrator.cli.planning import build_all, read_lane_or_run
    from orchestrator.plan.derive import derive
    from orchestrator.spec.program import CommandRunSpec

    content = content_of(args.content)
    lane, spec = read_lane_or_run(find_spec(args.file, content))
    if isinstance(spec, CommandRunSpec):
        return _command(args, spec)
    planned = derive(spec)
    programs = build_all(planned, spec, lane, content.root)
    paths = [_write(args.output / f"{program.role}.elf", program.data) for program in programs]
    if args.json:
        entries = [
            {
                "role": program.role,
                "target": program.target,
                "path": str(path),
                "program_sha256": program.sha256,
                "sha256": program.sha256,  # nothing is bound in yet: the file is the program
                "size": program.size,
            }
            for program, path in zip(programs, paths, strict=True)
        ]
        print_json({"plan": planned.plan.digest, "programs": entries})
    else:
        say(f"plan {planned.plan.digest}")
        rows = [(p.role, p.target, p.size, p.sha256, path) for p, path in zip(programs, paths, strict=True)]
        say(table(("role", "target", "bytes", "sha256", "path"), rows))
    return 0


def _command(args: argparse.Namespace, spec: CommandRunSpec) -> int:
    """Of a user's own program nothing is compiled: its files are written as every node is given them."""
    from orchestrator.cli.command_plan import all_files
    from orchestrator.plan.command import command_plan

    plan = command_plan(spec)
    written = [
        (use, file, _write(args.output / use / file.name, file.path.read_bytes()))
        for use, file in all_files(plan)
    ]
    if args.json:
        entries = [
            {"for": use, "path": str(path), "sha256": file.sha256, "size": file.size}
            for use, file, path in written
        ]
        print_json({"plan": plan.digest, "programs": [], "files": entries})
    else:
        say(f"plan {plan.digest}")
        rows = [(use, file.size, file.sha256, path) for use, file, path in written]
        say(table(("file for", "bytes", "sha256", "path"), rows))
    return 0


def _write(path: Path, data: bytes) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data, 0o755)
    except OSError as error:
        with suppress(OSError):
            path.with_name(part_name(path.name)).unlink(missing_ok=True)
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    return path
