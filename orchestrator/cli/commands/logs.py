"""`orch logs`: what the roles of the newest launch write, while it runs or afterwards."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestrator.cli.arguments import add_json
from orchestrator.cli.output import complain, plain, print_json, say
from orchestrator.cli.outputs import FILES, Newest, Reader, follow, is_over, journal, newest
from orchestrator.cli.project import find_bundle
from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.remote.base import Remote

_GRACE_S: Final = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the role, and whether to go on until the launch ends."""
    parser.add_argument("role", nargs="?", metavar="ROLE", help="one role alone (default: all)")
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the launch ends")
    parser.add_argument("--bundle", default="last", metavar="BUNDLE", help="another than the newest")
    parser.add_argument(
        "--pods",
        type=Path,
        metavar="FILE",
        help="where its nodes are (default: the file that it was begun with)",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Show it; nothing is changed, and whoever runs the lane is not disturbed."""
    if args.follow and args.json:
        raise UsageError("--follow and --json exclude each other: one object is printed when all is known")
    bundle = _of_launches(find_bundle(args.bundle))
    launch = newest(bundle)
    roles = _roles(launch, args.role)
    over = is_over(bundle, launch)
    with _reached(args, bundle, launch, roles, over=over) as remotes:
        reader = Reader(launch, roles, remotes)
        if args.json:
            print_json(_json(bundle, reader, over=over))
            return 0
        complain(f"{bundle.name}: {launch.name}" + ("" if over else ", which has not been collected yet"))
        screen = _Screen()
        if args.follow:
            follow(bundle, reader, screen.show)
        else:
            for each in reader.from_nodes() if remotes else reader.from_bundle():
                screen.show(*each)
        screen.end()
    return 0


def _of_launches(bundle: Path) -> Path:
    """Give the bundle that launches are in: of a matrix the cell's that was begun last."""
    from orchestrator.qualify.matrix.view import bundles_of

    return (*bundles_of(bundle)[-1:], bundle)[0]


def _roles(launch: Newest, role: str | None) -> tuple[str, ...]:
    if role is None:
        return tuple(launch.jobs)
    if role not in launch.jobs:
        raise UsageError(f"{launch.name} has no role `{plain(role)}`: it has {', '.join(launch.jobs)}")
    return (role,)


@contextmanager
def _reached(
    args: argparse.Namespace, bundle: Path, launch: Newest, roles: tuple[str, ...], *, over: bool
) -> Iterator[Mapping[str, Remote]]:
    """Give the way to the nodes of these roles; none where the bundle has everything."""
    if over:
        yield {}
        return
    remotes = _open(args, str(journal(bundle)[0].data["pods"]), {launch.nodes[role] for role in roles})
    try:
        yield remotes
    finally:
        for remote in remotes.values():
            remote.close()


def _open(args: argparse.Namespace, begun_with: str, names: set[str]) -> Mapping[str, Remote]:
    from orchestrator.qualify.view import LOCAL, SIMULATED
    from orchestrator.remote.local import Local

    if begun_with in (LOCAL, SIMULATED):
        return {LOCAL: Local(LOCAL)}
    from orchestrator.remote.retry import Retrying
    from orchestrator.remote.ssh import Ssh
    from orchestrator.spec.read import read_pods

    spec = read_pods(args.pods or Path(begun_with))
    if missing := sorted(names - spec.nodes.keys()):
        raise UsageError(f"{spec.path} has no node `{missing[0]}`; --pods FILE names the file of this run")
    ways = {name: Ssh(node) for name, node in spec.nodes.items() if name in names}
    return {
        name: Retrying(way, journal=_tell, wait=time.sleep, grace_s=_GRACE_S) for name, way in ways.items()
    }


def _tell(kind: str, data: Mapping[str, Any]) -> None:
    """Say when a node is out of reach and when it is back; what is done there is nothing but reading."""
    if kind in ("remote.unreachable", "remote.reachable", "remote.lost"):
        complain(f"{data.get('node')}: {kind.removeprefix('remote.')}")


class _Screen:
    """Lines as they become whole, each after its role and file."""

    def __init__(self) -> None:
        self._begun: dict[tuple[str, str], bytes] = {}

    def show(self, role: str, name: str, data: bytes) -> None:
        """Print the lines that are whole now."""
        *lines, rest = (self._begun.pop((role, name), b"") + data).split(b"\n")
        for line in lines:
            _print(role, name, line)
        if rest:
            self._begun[role, name] = rest

    def end(self) -> None:
        """Print what never became a whole line."""
        for (role, name), line in self._begun.items():
            _print(role, name, line)
        self._begun.clear()


def _print(role: str, name: str, line: bytes) -> None:
    say(f"{role} {name}: {plain(line.decode('utf-8', 'replace').removesuffix(chr(13)))}", now=True)


def _json(bundle: Path, reader: Reader, *, over: bool) -> dict[str, Any]:
    found: dict[str, dict[str, str]] = {role: dict.fromkeys(FILES, "") for role in reader.roles}
    parts: dict[tuple[str, str], bytes] = {}
    for role, name, data in reader.from_bundle() if over else reader.from_nodes():
        parts[role, name] = parts.get((role, name), b"") + data
    for (role, name), data in parts.items():
        found[role][name] = data.decode("utf-8", "backslashreplace")
    return {"bundle": str(bundle), "launch": reader.launch.name, "collected": over, "roles": found}
