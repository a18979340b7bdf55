"""What runs left on the nodes of a rental, and which of it nobody needs any more.

Knows marks of owners, locks and bundles of this project; must not know how a node is reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from orchestrator.cli.project import all_bundles, first_event

if TYPE_CHECKING:
    from orchestrator.remote.base import Remote


@dataclass(frozen=True)
class Left:
    """A run's folder, or a lock, that is still on a node.

    Attributes:
        node: where.
        folder: the folder, or the lock's.
        run_id: whose it is; empty for a lock.
        bundle: the run's bundle in this project; empty if it is not here.
        state: `removed`, or why it was not: `running`, `open` (the run may be resumed), `not ours`. Of a lock
            `freed`, or who holds it.
    """

    node: str
    folder: str
    run_id: str
    bundle: str
    state: str


def run_ids(bundles: Path) -> dict[str, Path]:
    """Gives the bundles of a folder by their run."""
    return {str(first_event(bundle).get("source", "")): bundle for bundle in all_bundles(bundles)}


def clean(
    remote: Remote, base: PurePosixPath, owner: str, runs: Mapping[str, Path], *, also_open: bool
) -> tuple[Left, ...]:
    """Removes this owner's folders of runs that have ended, and a lock that counts no more.

    Args:
        remote: the node.
        base: the folder for everything of ours there.
        owner: who cleans: another's runs stay.
        runs: the bundles that are here, by run id.
        also_open: also what runs would need that may be resumed.
    """
    from orchestrator.remote.lock import is_held_for, is_left_behind

    locked = remote.lock_holder(base)
    found = []
    for name in filter(is_run_id, remote.list(base)):
        root, bundle = base / name, runs.get(name)
        is_lock = is_held_for(locked, name)
        state = _needed(remote, root, owner, bundle, also_open=also_open)
        if is_lock and not is_left_behind(locked) and not _is_let_go(bundle):
            state = "running"
        if not state:
            state = _removed(remote, root)
            if is_lock and not remote.lock(base, name, owner):  # whoever has it may take it again
                remote.unlock(base, name)
        found.append(Left(remote.name, str(root), name, bundle.name if bundle else "", state))
    if locked := remote.lock_holder(base):
        state = _freed(remote, base, owner) if is_left_behind(locked) else locked
        found.append(Left(remote.name, str(base), "", "", state))
    return tuple(found)


def _is_let_go(bundle: Path | None) -> bool:
    """Says whether the bundle is here and no controller has it."""
    from orchestrator.qualify.holder import is_held

    return bundle is not None and not is_held(bundle)


def _needed(remote: Remote, root: PurePosixPath, owner: str, bundle: Path | None, *, also_open: bool) -> str:
    """Says why a folder stays; nothing if nobody needs it."""
    from evidence.verify import is_sealed
    from orchestrator.remote.base import RemoteError
    from orchestrator.remote.root import MOST_OF_A_MARK, OWNER_MARK, mark_of

    try:
        mark = remote.get(root / OWNER_MARK, most=MOST_OF_A_MARK)
    except RemoteError:  # a link, or another user's
        mark = None
    if mark != mark_of(owner, root.name):
        return "not ours"
    if remote.processes_under(root):
        return "running"
    if bundle is not None and not is_sealed(bundle) and not also_open:
        return "open"
    return ""


def _removed(remote: Remote, root: PurePosixPath) -> str:
    from orchestrator.remote.base import RemoteError, UnreachableError

    try:
        remote.remove(root)
    except UnreachableError:
        raise
    except RemoteError as error:
        return f"not ours ({error})"
    return "removed"


def _freed(remote: Remote, base: PurePosixPath, owner: str) -> str:
    """Takes over a lock that was left behind and gives it back; says who was faster, if somebody was."""
    passing = str(uuid4())
    if holder := remote.lock(base, passing, owner):
        return holder
    remote.unlock(base, passing)
    return "freed"


def is_run_id(name: str) -> bool:
    """Say whether a name is a run's, in the one form in which they are written."""
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False
