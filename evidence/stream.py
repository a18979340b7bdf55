"""The journal of a run: `stream.jsonl`, appended line by line, each line naming the hash of the one before.

Knows the chain, what a torn last line is, and that nothing follows the sealing record. Must not know what any
other event means. A chain alone cannot show that its tail was cut off: the sealing record and a copy of the
head kept elsewhere do.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from evidence.canonical import CanonicalError, dumps
from evidence.digest import measure_file, sha256_bytes
from evidence.event import GENESIS, MAX_LINE_BYTES, Event, EventError, parse
from evidence.files import open_regular, sync_folder, write_whole

SEALED: Final = "orch.lane.sealed"
TORN: Final = "orch.stream.torn"


class StreamError(Exception):
    """The stream is not what it must be.

    Attributes:
        line: number of the offending line, from 1; 0 for the file as a whole.
        message: what is wrong with it.
    """

    def __init__(self, line: int, message: str) -> None:
        self.line = line
        self.message = message
        super().__init__(f"line {line}: {message}" if line else message)


class TornError(StreamError):
    """The last line is incomplete: a writer died while writing it."""


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a sound stream.

    Attributes:
        size: bytes of the sound lines.
        head: SHA-256 of the last of them, without its newline; `GENESIS` if there is none.
        records: how many lines.
        sealed: whether the last of them is the sealing record.
    """

    size: int = 0
    head: str = GENESIS
    records: int = 0
    sealed: bool = False


_BEGINNING = Tail()


def scan(path: Path, tail: Tail = _BEGINNING, source: str | None = None) -> Iterator[tuple[Event, Tail]]:
    """Give the events in order, each with the tail that it leaves, holding one line at a time.

    Args:
        path: of the stream.
        tail: of what was read before; the events after it are given.
        source: of what was read before; None at the beginning.

    Raises:
        TornError: the last line has no newline or is no JSON; every line before it was given.
        StreamError: any other line is wrong, the chain is broken, or a line follows the sealing record.
        OSError: the file cannot be read.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        file.seek(tail.size)
        following = file.readline(MAX_LINE_BYTES)
        while raw := following:
            following = file.readline(MAX_LINE_BYTES)
            number = tail.records + 1
            if tail.sealed:
                raise StreamError(number, "follows the sealing record")
            event = _read_line(raw, number, last=not following)
            if (event.sequence, event.prevhash) != (number, tail.head):
                raise StreamError(
                    number, f"breaks the chain (got {event.sequence}, expected {number} after {tail.head})"
                )
            if event.source != (source := source or event.source):
                raise StreamError(number, f"another source (got {event.source!r}, expected {source!r})")
            tail = Tail(tail.size + len(raw), sha256_bytes(raw[:-1]), number, event.type == SEALED)
            yield event, tail


class Growing:
    """The events of a stream as far as it goes now; what was read is not read again.

    A stream grows at its end alone: one that is shorter than it was is read anew.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begin()

    def _begin(self) -> None:
        self._tail = _BEGINNING
        self._read: list[Event] = []
        self._events: tuple[Event, ...] = ()

    def events(self) -> tuple[Event, ...]:
        """All of them.

        Raises:
            TornError: the last line is incomplete.
            StreamError: another line is wrong.
            OSError: the file cannot be read.
        """
        size = self._path.stat().st_size
        if size < self._tail.size:
            self._begin()
        if size > self._tail.size:
            source = self._read[0].source if self._read else None
            for event, tail in scan(self._path, self._tail, source):
                self._read.append(event)
                self._tail = tail
            self._events = tuple(self._read)
        return self._events


def read(path: Path) -> tuple[Event, ...]:
    """Read a whole stream.

    Raises:
        TornError: the last line is incomplete.
        StreamError: another line is wrong, or the file cannot be read (line 0).
    """
    try:
        return tuple(event for event, _ in scan(path))
    except OSError as error:
        raise StreamError(0, f"cannot be read: {error.strerror}") from error


def _read_line(raw: bytes, number: int, *, last: bool) -> Event:
    if not raw.endswith(b"\n"):
        if last:
            raise TornError(number, "incomplete line")
        raise StreamError(number, f"longer than {MAX_LINE_BYTES} bytes")
    try:
        return parse(raw[:-1])
    except EventError as error:
        if last and not _is_json(raw):
            raise TornError(number, f"incomplete line: {error}") from error
        raise StreamError(number, str(error)) from error


def _is_json(raw: bytes) -> bool:
    """Say whether a line got as far as being JSON: then it was edited, not torn."""
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True


class Stream:
    """A stream open for appending. `append` may be called from several threads, by one process at a time."""

    def __init__(self, path: Path, source: str, events: list[Event], tail: Tail, *, fsync: bool) -> None:
        self.path = path
        self.source = source
        self._events = events
        self._tail = tail
        self._fsync = fsync
        self._lock = threading.Lock()
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)

    @classmethod
    def create(cls, path: Path, source: str, *, fsync: bool = True) -> Self:
        """Begin a stream.

        Args:
            path: must not exist.
            source: the run id.
            fsync: whether an event is on the disk, not only in the kernel, when `append` returns.

        Raises:
            OSError: it exists already, or cannot be made.
        """
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
        sync_folder(path.parent)
        return cls(path, source, [], Tail(), fsync=fsync)

    @classmethod
    def reopen(cls, path: Path, source: str, *, fsync: bool = True) -> Self:
        """Go on with the stream of a run that was interrupted.

        A torn last line is moved to `stream.torn-N` beside the stream, and an event says so with its name,
        size and digest; being killed in the middle of that loses nothing either.

        Raises:
            StreamError: the chain does not hold, it is another run's, or bytes follow the sealing record.
            OSError: it cannot be read or written.
        """
        events: list[Event] = []
        tail = Tail()
        torn = False
        try:
            for event, tail in scan(path):  # noqa: B007 - the last tail is what the stream ends in
                events.append(event)
        except TornError:
            torn = True
        if events and events[0].source != source:
            raise StreamError(1, f"another run's stream (got {events[0].source!r}, expected {source!r})")
        stream = cls(path, source, events, tail, fsync=fsync)
        try:
            stream._set_aside(torn=torn)
        except BaseException:
            stream.close()
            raise
        return stream

    @property
    def head(self) -> str:
        """SHA-256 of the last line, without its newline; 64 zeros before the first."""
        return self._tail.head

    @property
    def records(self) -> int:
        """How many events there are."""
        return self._tail.records

    @property
    def sealed(self) -> bool:
        """Whether the last event is the sealing record, after which nothing can be appended."""
        return self._tail.sealed

    @property
    def events(self) -> tuple[Event, ...]:
        """All events, in order."""
        return tuple(self._events)

    def append(
        self,
        type: str,  # noqa: A002 - the CloudEvents name
        subject: str,
        data: Mapping[str, Any],
        *,
        durable: bool = True,
    ) -> Event:
        """Write one event and give it back as a reader will see it.

        One that need not be `durable` is on the disk with the next one that is: every line follows the one
        before.

        An exception, whichever and wherever, leaves the stream as it was.

        Raises:
            StreamError: the stream is sealed, the event breaks a rule, or someone else wrote to the file.
            OSError: it cannot be written.
        """
        with self._lock:
            tail = self._tail
            number = tail.records + 1
            if tail.sealed:
                raise StreamError(number, "the stream is sealed")
            event, line = self._event(type, subject, data)
            if os.fstat(self._descriptor).st_size != tail.size:
                raise StreamError(number, "something else wrote to the stream")
            try:
                if os.write(self._descriptor, line + b"\n") != len(line) + 1:
                    raise OSError("short write: no room for the event")  # noqa: TRY301 - undone below
                if self._fsync and durable:
                    os.fsync(self._descriptor)
                self._events.append(event)
                self._tail = Tail(tail.size + len(line) + 1, sha256_bytes(line), number, type == SEALED)
            except BaseException:
                # Also after Ctrl-C at any point above: file and memory agree again.
                os.ftruncate(self._descriptor, self._tail.size)
                del self._events[self._tail.records :]
                raise
            return event

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        with self._lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _event(self, type: str, subject: str, data: Mapping[str, Any]) -> tuple[Event, bytes]:  # noqa: A002
        try:
            content = dumps(dict(data))
            event = Event(
                source=self.source,
                sequence=self._tail.records + 1,
                type=type,
                subject=subject,
                time=datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
                monotonicns=time.monotonic_ns(),
                prevhash=self._tail.head,
                # Read back: it shares no mutable value with the caller, and equals what a reader will see.
                data=json.loads(content),
            )
            return event, event.line_around(content)
        except (EventError, CanonicalError) as error:
            raise StreamError(self._tail.records + 1, str(error)) from error

    def _set_aside(self, *, torn: bool) -> None:
        """Move the torn line away, and note every torn file that the events do not mention yet."""
        size = os.fstat(self._descriptor).st_size
        if self.sealed:
            if size != self._tail.size:
                raise StreamError(self.records + 1, "follows the sealing record")
            return
        noted = sum(event.type == TORN for event in self._events)
        files: list[Path] = []
        while (file := self._torn_path(noted + len(files) + 1)).exists():
            files.append(file)
        if torn:
            with os.fdopen(open_regular(self.path), "rb") as stream:
                stream.seek(self._tail.size)
                rest = stream.read()
            # The same bytes are there already if the last attempt was killed before it cut the stream.
            if not files or files[-1].read_bytes() != rest:
                write_whole(file, rest)
                files.append(file)
            os.ftruncate(self._descriptor, self._tail.size)
        for file in files:
            sha256, length = measure_file(file)
            self.append(TORN, file.name, {"name": file.name, "sha256": sha256, "size": length})

    def _torn_path(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.stem}.torn-{number}")
