"""What only the engine knows, as it is handed to the tracker's command.

Imports go down only: the tracker says here what it asks for, and the console script gives it. Knows no
reader, no judge and no project file itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tracker.programme import Programme


@dataclass(frozen=True)
class Judge:
    """Who recomputes what a bundle's files show.

    Attributes:
        version: of the judge; kept with every run that it judged.
        differences: gives where a bundle's record is not what its files show, one line each; none means that
            the record is recomputed. Whatever it raises means that the bundle cannot be judged.
    """

    version: str
    differences: Callable[[Path], tuple[str, ...]]

    def complaints(self, bundle: Path) -> tuple[str, ...]:
        """Judge a bundle that has verified; give every reason not to believe its record. Never raises."""
        try:
            found = self.differences(bundle)
        except Exception as error:  # noqa: BLE001  (whatever broke, a judge that crashed has shown nothing)
            return (f"cannot be judged ({type(error).__name__}: {error})",)
        return tuple(f"not what its files show: {difference}" for difference in found)


@dataclass(frozen=True)
class Engine:
    """The engine's part in the tracker's commands.

    Attributes:
        version: of the distribution.
        read_programme: reads a programme file; what it raises is passed on.
        judge: recomputes bundles before they are recorded.
        default_db: gives the database where neither `--db` nor `TRACKER_DB` names one; asked only then.
        find_bundle: gives a bundle's folder by its path, its name or `last`; what it raises is passed on.
        bundles: gives the folders of all bundles of the project.
        lane_file: gives the file of a lane by the lane's name, as `orch run` takes it; None if none is known.
    """

    version: str
    read_programme: Callable[[Path], Programme]
    judge: Judge
    default_db: Callable[[], str]
    find_bundle: Callable[[str], Path]
    bundles: Callable[[], tuple[Path, ...]]
    lane_file: Callable[[str], Path | None]
