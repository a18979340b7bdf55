"""The console script `tracker`: the tracker's own command, given the engine's part of it.

Imports go down only, so the tracker cannot reach for the reader of programmes, the judge of bundles or the
project by itself. Each is imported when it is asked for: `tracker status` needs no more than the database.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator import __version__
from orchestrator.cli.boundary import guard
from orchestrator.cli.output import withheld
from orchestrator.cli.project import all_bundles, find_bundle, find_project
from orchestrator.errors import RefusedError
from orchestrator.redact import Secrets

if TYPE_CHECKING:
    from tracker.programme import Programme

_LANES = frozenset((".toml", ".yaml", ".yml"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line of `tracker`; gives the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return guard(lambda: _run(arguments), command="tracker", as_json="--json" in arguments)


def _run(arguments: list[str]) -> int:
    import tracker.cli
    from tracker.engine import Engine, Judge

    engine = Engine(
        version=__version__,
        read_programme=_read_programme,
        judge=Judge(__version__, differences),
        default_db=lambda: find_project(quiet=True).tracker_url,
        find_bundle=find_bundle,
        bundles=lambda: all_bundles(find_project(quiet=True).bundles),
        lane_file=lane_file,
    )
    return tracker.cli.main(_kept(arguments), engine)


def _kept(arguments: Sequence[str]) -> list[str]:
    """Give a command line as the database may keep it: no secret but in the way to the database itself."""
    before = ["", *arguments]
    return [
        each if last == "--db" or each.startswith("--db=") else withheld(each)
        for last, each in zip(before, arguments, strict=False)
    ]


def _read_programme(path: Path) -> Programme:
    from orchestrator.spec.read import read_programme

    programme = read_programme(path)
    if refusals := Secrets.here(find_project(quiet=True).secrets).refusals([path]):
        raise RefusedError(refusals)
    return programme


def differences(bundle: Path) -> tuple[str, ...]:
    """Give where the record of a sound bundle is not what its files show."""
    from orchestrator.qualify.matrix.judge import judgement_of

    return judgement_of(bundle).differences


def lane_file(name: str) -> Path | None:
    """Give the file of a lane as `orch run` takes it: here, in the project, or of the content."""
    from orchestrator.spec import content

    project = find_project(quiet=True)
    shipped = content.locate(project.content)
    for root in filter(None, (Path(), project.root, shipped)):
        found = next((path for path in _lane_files(root, name) if _is_lane(path, name)), None)
        if found is not None:
            return found.relative_to(root) if root == shipped else found
    return None


def _lane_files(root: Path, name: str) -> Iterator[Path]:
    """Give the files that may be lanes, those named like the lane first."""
    found = [path for pattern in ("lanes/*", "*") for path in root.glob(pattern) if path.suffix in _LANES]
    yield from sorted(found, key=lambda path: (path.stem != name, path))


def _is_lane(path: Path, name: str) -> bool:
    from orchestrator.spec.document import load

    document, _ = load(path)
    return document is not None and (document.get("orch"), document.get("name")) == ("lane/v1", name)


if __name__ == "__main__":
    sys.exit(main())
