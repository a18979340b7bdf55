"""Where a user's things are: `orch.toml`, found upward from the working folder like `.git`.

Knows where bundles and the tracker's database go, and who owns them; must not know what is in them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.cli.output import complain, withhold
from orchestrator.errors import OrchError, UsageError

NAME = "orch.toml"
_DEFAULT_TRACKER = "sqlite:///{}/tracker.sqlite3"


@dataclass(frozen=True)
class Project:
    """What `orch.toml` says, or its defaults.

    Attributes:
        root: the folder that holds it; the working folder without one.
        bundles: where bundles go.
        tracker_url: the tracker's database, a SQLAlchemy URL.
        owner: who runs, for owner marks; may be empty.
        content: the folder with specs, roles and lanes, if the project names one.
        file: `orch.toml` itself; None without one.
        secrets: variables whose values are secret, whatever they are called.
    """

    root: Path
    bundles: Path
    tracker_url: str
    owner: str = ""
    content: Path | None = None
    file: Path | None = None
    secrets: tuple[str, ...] = ()


def project_file(start: Path) -> Path | None:
    """Give the nearest `orch.toml` at or above a folder."""
    for folder in (start, *start.parents):
        if (folder / NAME).is_file():
            return folder / NAME
    return None


def find_project(*, quiet: bool = False) -> Project:
    """Read the project of the working folder.

    Args:
        quiet: whether not to say that there is none.

    Raises:
        RefusedError: its `orch.toml` is wrong.
    """
    here = Path.cwd()
    file = project_file(here)
    if file is None:
        if not quiet:
            complain(f"no {NAME} here or above: using {here} (`orch init` writes one)")
        return Project(here, here / "runs", _DEFAULT_TRACKER.format(here))
    from orchestrator.spec.read import read_project

    spec = read_project(file)
    withhold(spec.secrets)
    url = _beside(file.parent, spec.tracker) if spec.tracker else _DEFAULT_TRACKER.format(file.parent)
    return Project(file.parent, spec.bundles, url, spec.owner or "", spec.content, file, spec.secrets)


def _beside(root: Path, url: str) -> str:
    """Give the URL of a database file, whose path is meant beside `orch.toml`; another URL as it is."""
    path = url.removeprefix("sqlite:///")
    return url if "://" in path else f"sqlite:///{root / path}"


def find_bundle(name: str, folder: Path | None = None) -> Path:
    """Give the bundle that a command line names.

    Args:
        name: a path, the name of a bundle in the bundles folder, or `last`: the one begun last there.
        folder: the bundles folder, if it is not the project's.

    Raises:
        UsageError: there is none.
    """
    if name != "last" and Path(name).exists():
        return Path(name)
    bundles = folder or find_project(quiet=True).bundles
    if name != "last":
        if (bundles / name).is_dir():
            return bundles / name
        raise UsageError(f"no such bundle: {name} (neither a path nor in {bundles})")
    found = all_bundles(bundles)
    if not found:
        raise UsageError(f"there is no bundle in {bundles} yet: `orch run LANE` makes one")
    return found[-1]


def unsealed(bundle: Path) -> str:
    """Say in a sentence why a folder is no sealed bundle; empty if it is one, sound or not."""
    from evidence.bundle import is_sealed

    if is_sealed(bundle):
        return ""
    if not (bundle / "stream.jsonl").exists():
        return f"{bundle} is not a bundle: there is no stream.jsonl in it"
    return (
        f"{bundle} is not sealed: its run still goes on, or was interrupted; "
        f"`orch run --resume {bundle}` goes on with it"
    )


def require_sealed(bundle: Path) -> None:
    """Raise OrchError, with the sentence of `unsealed`, for a folder that is no sealed bundle."""
    if why := unsealed(bundle):
        raise OrchError(why)


def all_bundles(folder: Path) -> tuple[Path, ...]:
    """Give the bundles of a folder, the one begun last at the end; hidden ones are not whole yet."""
    found = [path.parent for path in folder.glob("*/stream.jsonl") if not path.parent.name.startswith(".")]
    # the time of the first event sorts as text, and copying a bundle does not change it
    return tuple(sorted(found, key=lambda bundle: (str(first_event(bundle).get("time", "")), bundle.name)))


def first_event(bundle: Path) -> dict[str, Any]:
    """Give a bundle's first event as it stands there, unchecked; empty if it cannot be read."""
    try:
        with (bundle / "stream.jsonl").open("rb") as file:
            event = json.loads(file.readline(1 << 20))
    except (OSError, ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}
