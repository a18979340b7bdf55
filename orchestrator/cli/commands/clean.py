"""`orch clean`: the work folders that runs of this project left, here or on the nodes of a rental."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from orchestrator.cli.arguments import add_json
from orchestrator.cli.nodes import each_node, read_rental, said_of, worst_exit
from orchestrator.cli.output import complain, print_json, say
from orchestrator.cli.project import all_bundles, find_project, first_event
from orchestrator.errors import OrchError

if TYPE_CHECKING:
    from orchestrator.remote.base import Remote
    from orchestrator.spec.pods import Node


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
    parser.add_argument(
        "--pods", type=Path, metavar="FILE", help="on the nodes of this file, instead of here"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Remove what no run needs any more, and say what was and was not removed."""
    if args.pods:
        return _on_nodes(args)
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


def _on_nodes(args: argparse.Namespace) -> int:
    """Clean every node of a rental; one that cannot be reached does not keep the others from it."""
    from orchestrator.cli.leftovers import Left as LeftThere
    from orchestrator.cli.leftovers import clean, run_ids

    spec = read_rental(args.pods)
    project = find_project()
    runs = run_ids(args.bundles or project.bundles)

    def one(node: Node, remote: Remote) -> tuple[LeftThere, ...]:
        base = remote.resolve(PurePosixPath(node.remote_root))
        return clean(remote, base, node.owner or project.owner, runs, also_open=args.open)

    answers = each_node(spec.nodes, one)
    found = [left for answer in answers.values() if not isinstance(answer, OrchError) for left in answer]
    failed = {name: answer for name, answer in answers.items() if isinstance(answer, OrchError)}
    if args.json:
        errors = {name: str(error) for name, error in failed.items()}
        print_json({"left": [asdict(left) for left in found], "errors": errors})
        return worst_exit(answers)
    for left in found:
        whose = left.bundle or ("the lock" if not left.run_id else "no bundle of it here")
        say(f"{left.node}:{left.folder}: {left.state} ({whose})")
    if any(left.state == "open" for left in found):
        complain("open: `orch run --resume BUNDLE` may go on from there; `--open` removes it all the same")
    for name, error in failed.items():
        complain(said_of(name, error))
    if not found and not failed:
        say("nothing is left")
    return worst_exit(answers)


def _clean(bundles: Path, *, also_open: bool) -> Iterator[Left]:
    from evidence.verify import is_sealed
    from orchestrator.qualify.matrix.view import bundles_of
    from orchestrator.remote.base import RemoteError
    from orchestrator.remote.local import Local

    node = Local()
    for bundle in (each for whole in all_bundles(bundles) for each in (whole, *bundles_of(whole))):
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
    from orchestrator.cli.leftovers import is_run_id
    from orchestrator.remote.root import own_root, run_of

    return is_run_id(folder.name) and folder.parent == own_root() and run_of(folder) == folder.name
