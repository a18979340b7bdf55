"""`orch clean`: the work folders that runs of this project left on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from uuid import UUID

from orchestrator.cli.arguments import add_json
from orchestrator.cli.output import print_json, say
from orchestrator.cli.project import all_bundles, find_project, first_event


@dataclass(frozen=True)
class Left:
    """A run's work folder that is still there.

    Attributes:
        bundle: the run's bundle.
        folder: the work folder.
        state: `removed`, or why it was not: `running`, `open` (the run may be resumed), `not ours`.
    """

    bundle: str
    folder: str
    state: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what else may go, and where bundles are."""
    parser.add_argument(
        "--open",
        action="store_true",
        help="also those of runs that are not sealed; resuming then begins steps anew",
    )
    parser.add_argument(
        "--bundles", type=Path, metavar="DIR", help="where bundles are (default: the project's)"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Remove what no run needs any more, and say what was and was not removed."""
    bundles = args.bundles or find_project().bundles
    found = tuple(_clean(bundles, also_open=args.open))
    if args.json:
        print_json({"left": [asdict(left) for left in found]})
        return 0
    for left in found:
        say(f"{left.folder}: {left.state} ({left.bundle})")
    if not found:
        say("nothing is left")
    return 0


def _clean(bundles: Path, *, also_open: bool) -> Iterator[Left]:
    from evidence.verify import is_sealed
    from orchestrator.remote.base import RemoteError
    from orchestrator.remote.local import Local

    node = Local()
    for bundle in all_bundles(bundles):
        folder = _work_folder(bundle)
        if folder is None or not Path(folder).is_dir():
            continue
        if not _is_ours(Path(folder)):
            state = "not ours"
        elif node.processes_under(folder):
            state = "running"
        elif not is_sealed(bundle) and not also_open:
            state = "open"
        else:
            try:
                node.remove(folder)
                state = "removed"
            except RemoteError:
                state = "not ours"
        yield Left(bundle.name, str(folder), state)


def _work_folder(bundle: Path) -> PurePosixPath | None:
    """Give where the bundle says that its roles worked: the recorded root and, in it, the stream's run id."""
    event = first_event(bundle)
    data, source = event.get("data"), event.get("source")
    root = data.get("remote_root") if isinstance(data, dict) else None
    if not isinstance(root, str) or not isinstance(source, str) or "\0" in root + source:
        return None
    return PurePosixPath(root) / source


def _is_ours(folder: Path) -> bool:
    """Say whether a folder is a root of this user's, made for the run that it is named after.

    A bundle may be anybody's, and name any folder: nothing that it says is enough to remove one.
    """
    from orchestrator.remote.root import own_root, run_of

    try:
        is_run = str(UUID(folder.name)) == folder.name
    except ValueError:
        return False
    return is_run and folder.parent == own_root() and run_of(folder) == folder.name
