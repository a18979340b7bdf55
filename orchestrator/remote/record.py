"""A Remote that journals what is done on a node: a typed event for each act, and counts of mere looks.

An event says what, where, how large, which digest and how it ended; never what a file, a stream or an
environment holds.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, TypeVar

from orchestrator.remote.around import Around
from orchestrator.remote.base import MOST_BYTES, Completed, Job, Remote, RemoteError, Tunnel
from orchestrator.remote.retry import Journal

T = TypeVar("T")


class Recorded(Around):
    """Journals every act once it has ended, well or not; of looks it keeps the number.

    Args:
        inner: does it.
        journal: gets `remote.root`, `.put`, `.get`, `.run`, `.start`, `.prevent`, `.signal`, `.end`,
            `.remove`, `.lock`, `.unlock` and `.tunnel`, from any thread that asks; at the end `remote.closed`
            with the counts. Data: `node`, what it was about, `elapsed_ms`, and `failed` where it was.
    """

    def __init__(self, inner: Remote, journal: Journal) -> None:
        super().__init__(inner)
        self._journal = journal
        self._lock = threading.Lock()
        self._looks: Counter[str] = Counter()

    def _ask(self, what: str, request: Callable[[], T]) -> T:
        with self._lock:
            self._looks[what] += 1
        return request()

    def _act(
        self,
        what: str,
        about: Mapping[str, Any],
        request: Callable[[], T],
        outcome: Callable[[T], Mapping[str, Any]] = lambda _: {},
    ) -> T:
        begun = time.monotonic()
        ended: Mapping[str, Any] = {"failed": "interrupted"}
        try:
            answer = request()
            ended = outcome(answer)
        except RemoteError as error:
            ended = {"failed": str(error)}
            raise
        finally:
            elapsed_ms = round(1000 * (time.monotonic() - begun))
            self._journal(f"remote.{what}", {"node": self.name, **about, **ended, "elapsed_ms": elapsed_ms})
        return answer

    def run(self, argv: Sequence[str], *, deadline_s: float) -> Completed:
        """Journals the command, its exit code, how much it said, and the digest of what it answered."""
        return self._act(
            "run",
            {"argv": list(argv)},
            lambda: self.inner.run(argv, deadline_s=deadline_s),
            lambda done: {
                "exit": done.exit,
                "stdout": len(done.stdout),
                "stdout_sha256": hashlib.sha256(done.stdout).hexdigest(),
                "stderr": len(done.stderr),
            },
        )

    def make_root(self, root: PurePosixPath, owner: str) -> None:
        """Journals the folder."""
        self._act("root", {"path": str(root)}, lambda: self.inner.make_root(root, owner))

    def put(self, data: bytes, path: PurePosixPath, *, executable: bool = False) -> str:
        """Journals the path, the size, and the digest of what lies there now."""
        return self._act(
            "put",
            {"path": str(path), "size": len(data), "executable": executable},
            lambda: self.inner.put(data, path, executable=executable),
            lambda sha256: {"sha256": sha256},
        )

    def get(self, path: PurePosixPath, *, most: int = MOST_BYTES) -> bytes | None:
        """Journals the path, the size and the digest; a file that is not there was a look."""
        begun = time.monotonic()
        data = self._ask("get", lambda: self.inner.get(path, most=most))
        if data is not None:
            got = {"path": str(path), "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            elapsed_ms = round(1000 * (time.monotonic() - begun))
            self._journal("remote.get", {"node": self.name, **got, "elapsed_ms": elapsed_ms})
        return data

    def start(self, job: Job) -> None:
        """Journals the job, and of its environment the names."""
        names = [*(name for name, _ in job.environment), *job.inherit]
        about = {"argv": list(job.argv), "deadline_s": job.deadline_s, "environment": names}
        self._act("start", {"path": str(job.folder), **about}, lambda: self.inner.start(job))

    def prevent(self, job: Job) -> None:
        """Journals the job's folder."""
        self._act("prevent", {"path": str(job.folder)}, lambda: self.inner.prevent(job))

    def signal(self, job: Job, number: int) -> None:
        """Journals the job's folder and the signal's number."""
        about = {"path": str(job.folder), "signal": number}
        self._act("signal", about, lambda: self.inner.signal(job, number))

    def end(self, folder: PurePosixPath) -> None:
        """Journals the folder."""
        self._act("end", {"path": str(folder)}, lambda: self.inner.end(folder))

    def remove(self, folder: PurePosixPath) -> None:
        """Journals the folder."""
        self._act("remove", {"path": str(folder)}, lambda: self.inner.remove(folder))

    def lock(self, base: PurePosixPath, run_id: str, owner: str) -> str:
        """Journals the folder, and who else has it if somebody does."""
        return self._act(
            "lock",
            {"path": str(base), "run": run_id},
            lambda: self.inner.lock(base, run_id, owner),
            lambda holder: {"holder": holder},
        )

    def unlock(self, base: PurePosixPath, run_id: str) -> None:
        """Journals the folder."""
        self._act("unlock", {"path": str(base), "run": run_id}, lambda: self.inner.unlock(base, run_id))

    def tunnel(self, to: Remote, port: int) -> Tunnel:
        """Journals where it leads, and the port that it got."""
        return self._act(
            "tunnel",
            {"to": to.name, "to_port": port},
            lambda: self.inner.tunnel(to, port),
            lambda tunnel: {"port": tunnel.port},
        )

    def close(self) -> None:
        """Journals how often the node was looked at, and lets go of it."""
        with self._lock:
            looks = dict(sorted(self._looks.items()))
        self._journal("remote.closed", {"node": self.name, "looks": looks})
        super().close()
