"""How a program of the user's own is started: its words, its environment and its limits, as in `launch.json`.

Knows the contract by which such a program is told what to do. Where on a node it works is not known here:
`{work}` and `{setup}` stand for folders until a job is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any, ClassVar

OUT = "checkpoint/state"  # what a program publishes lies there, in its work folder: a file, or a folder
IN = "restore/state"  # and what it resumes from
PROGRESS = "progress"
WORK, SETUP = "{work}", "{setup}"
NO_LIMIT = -1
# the folder that the program publishes into is made; a limit on the size of files is kept by the kernel
_ENTER = 'mkdir -p "$1" || exit 126; [ "$2" -lt 0 ] || ulimit -f "$2" || exit 126; shift 2; exec "$@"'


@dataclass(frozen=True)
class Invocation:
    """What takes the place of a native role's binding.

    Attributes:
        argv: program and arguments.
        environment: names and values, those of the contract among them.
        inherit: names whose values are the node's own.
        target: version to reach.
        resume: whether it is given a checkpoint.
        file_blocks: no file may grow past so many blocks of 512 bytes; `NO_LIMIT` for no limit.
        folder: made before it starts.
        connect_ms: as the lane says; a foreign program is only told its deadline.
        round_ms: likewise.
        run_ms: after which the runner ends it.
    """

    publish_at: ClassVar[int] = 0
    secret: ClassVar[str] = ""

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    inherit: tuple[str, ...]
    target: int
    resume: bool
    file_blocks: int
    folder: str
    connect_ms: int
    round_ms: int
    run_ms: int

    def as_json(self) -> dict[str, Any]:
        """As in `launch.json`."""
        return {
            **asdict(self),
            "argv": list(self.argv),
            "environment": [list(pair) for pair in self.environment],
            "inherit": list(self.inherit),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Invocation:
        """The inverse of `as_json`."""
        return cls(
            **{
                **value,
                "argv": tuple(value["argv"]),
                "environment": tuple((name, text) for name, text in value["environment"]),
                "inherit": tuple(value["inherit"]),
            }
        )

    def words(self, work: PurePosixPath, root: PurePosixPath) -> tuple[str, ...]:
        """The command line of the job, in a run's folder `root` on a node."""
        made = _placed(self.folder, work, root)
        argv = (_placed(word, work, root) for word in self.argv)
        return ("sh", "-c", _ENTER, "sh", made, str(self.file_blocks), *argv)

    def variables(self, work: PurePosixPath, root: PurePosixPath) -> tuple[tuple[str, str], ...]:
        """The environment of the job."""
        return tuple((name, _placed(text, work, root)) for name, text in self.environment)


def _placed(text: str, work: PurePosixPath, root: PurePosixPath) -> str:
    return text.replace(WORK, str(work)).replace(SETUP, str(root / "setup"))
