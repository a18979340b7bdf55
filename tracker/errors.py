"""What the tracker reports by a message and an exit code, never by a traceback.

    TrackerError              base
     +-- UsageError           the command line or the URL cannot mean anything          exit 2
     +-- StoreError           the database cannot be used: absent, foreign, damaged     exit 1
     |    +-- LockedError     another writer held it for longer than the busy timeout   exit 4
     +-- RecordError          what was to be recorded contradicts what is recorded      exit 1
     |    +-- ImmutableError  the database itself refused: a trigger or a constraint    exit 1
     +-- BundleError          a bundle is unsound or says what cannot be               exit 1
     +-- ProgrammeError       a programme contradicts itself                            exit 1

Knows no database library.
"""

from __future__ import annotations

from collections.abc import Iterable


class TrackerError(Exception):
    """Base of everything that a tracker command reports without a traceback."""

    exit_code = 1


class UsageError(TrackerError):
    """The command line, or the database URL, asks for what cannot be meant."""

    exit_code = 2


class StoreError(TrackerError):
    """The database cannot be used as it is."""


class LockedError(StoreError):
    """Another writer held the database for longer than the busy timeout: nothing was decided."""

    exit_code = 4


class RecordError(TrackerError):
    """What was to be recorded contradicts what is recorded already."""


class ImmutableError(RecordError):
    """The database itself refused the change, by a trigger or a constraint."""


class BundleError(TrackerError):
    """A bundle does not verify, or its files contradict each other."""

    def __init__(self, bundle: object, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(f"{bundle}: {problem}" for problem in self.problems))


class ProgrammeError(TrackerError):
    """A programme contradicts itself. Carries every problem found."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))
