"""`orch stop`: end a lane that runs: by its controller, or in its stead where that is gone."""

from __future__ import annotations

import argparse
import os
import signal
import time
from pathlib import Path
from typing import Final

from orchestrator.cli.arguments import add_json, cache_folder, content_of
from orchestrator.cli.live import live_view
from orchestrator.cli.output import complain, print_json, say
from orchestrator.cli.outputs import journal
from orchestrator.cli.project import find_bundle, find_project
from orchestrator.errors import UndecidedError, UsageError
from orchestrator.redact import Secrets

_LOOK_S: Final = 0.1
_PATIENCE_S: Final = 120.0
_REASON: Final = "stopped by `orch stop`"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the bundle, and where its nodes are."""
    parser.add_argument(
        "bundle", nargs="?", default="last", metavar="BUNDLE", help="its folder or name (default: the newest)"
    )
    parser.add_argument(
        "--pods",
        type=Path,
        metavar="FILE",
        help="where its nodes are (default: the file that it was begun with)",
    )
    parser.add_argument(
        "--without-nodes",
        action="store_true",
        help="seal what was collected and ask no node: the pods are gone for good",
    )
    parser.add_argument("--db", metavar="URL", help="the tracker's database (default: the project's)")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Stop it; what ran is collected and sealed as unknown."""
    from evidence.bundle import is_sealed
    from evidence.digest import sha256_file
    from orchestrator.qualify import holder

    bundle = find_bundle(args.bundle)
    if not (bundle / "stream.jsonl").is_file():
        raise UsageError(f"{bundle} is not a bundle: there is no stream.jsonl in it")
    how = "ended before"
    if not is_sealed(bundle):
        how = "stopped"
        if args.without_nodes and journal(bundle)[0].data.get("pods") == "local":
            raise UsageError(f"{bundle} was begun on this machine, which is not gone: `orch stop` reaches it")
        if holder.is_held(bundle):
            _ask(bundle)
        else:
            _stop_in_its_stead(args, bundle)
    seal = sha256_file(bundle / "qualification.json")
    if args.json:
        print_json({"bundle": str(bundle), "state": how.replace(" ", "-"), "seal": seal})
    else:
        say(f"{how}: {bundle}\nseal: {seal}")
    return 0


def _ask(bundle: Path) -> None:
    """Ask the controller that has the bundle, and wait until it has sealed it.

    Raises:
        UndecidedError: it cannot be found, or does not come to an end.
    """
    from evidence.bundle import is_sealed
    from orchestrator.qualify import holder

    controller = holder.of(journal(bundle))
    if controller is None or not holder.is_here(controller):
        raise UndecidedError(
            f"{bundle} is held by a controller that is no process of this machine: stop it where it runs"
        )
    complain(f"asking the controller, process {controller.pid}, to stop")
    os.kill(controller.pid, signal.SIGTERM)
    limit = time.monotonic() + _PATIENCE_S
    while holder.is_held(bundle) and time.monotonic() < limit:
        time.sleep(_LOOK_S)
    if not is_sealed(bundle):
        raise UndecidedError(
            f"process {controller.pid} did not seal {bundle} (got none in {_PATIENCE_S:g} s, expected one); "
            f"`kill -KILL {controller.pid}` ends it, and `orch stop {bundle}` then does it in its stead"
        )


def _stop_in_its_stead(args: argparse.Namespace, bundle: Path) -> None:
    """End the lane's own roles, collect what they left, and seal it as unknown."""
    from orchestrator.cli.cells import cells_view
    from orchestrator.qualify.lane import run_lane
    from orchestrator.qualify.matrix.run import run_matrix
    from orchestrator.qualify.matrix.view import is_matrix
    from orchestrator.qualify.options import RunOptions
    from tracker.store import default_url

    complain("no controller has it: stopping the lane from here")
    project = find_project(quiet=True)
    options = RunOptions(
        lane=None,
        bundles=bundle.parent,
        content=content_of(args.content),
        pods=args.pods,
        resume=bundle,
        tracker_url=args.db or default_url(project.tracker_url),
        owner=project.owner,
        cache=cache_folder(),
        secrets=Secrets.here(project.secrets),
        stop=f"{_REASON}, its nodes given up" if args.without_nodes else _REASON,
        gives_up_nodes=args.without_nodes,
    )
    if is_matrix(bundle):
        with cells_view() as cells:
            run_matrix(options, cells)
        return
    with live_view() as view:
        run_lane(options, view)
