"""One event of the journal, and its line.

Knows CloudEvents 1.0 in the JSON format with the sequence extension, and the two attributes that are ours:
`prevhash`, which makes the lines a chain, and `monotonicns`. Must not know what any event means.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from json.encoder import encode_basestring as quote
from typing import Any, Final

from evidence.canonical import CanonicalError, dumps, loads
from evidence.digest import is_sha256

GENESIS: Final = "0" * 64  # what the first line gives as the hash of the line before it
TYPE_PREFIX: Final = "orch."
MAX_LINE_BYTES: Final = 16 << 20
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_COUNT: Final = re.compile(r"0|[1-9][0-9]{0,18}")
_ATTRIBUTES: Final = frozenset(
    ("data", "id", "monotonicns", "prevhash", "sequence", "source", "specversion", "subject", "time", "type")
)


class EventError(ValueError):
    """A line is not an event, or an event has no line."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the stream.

    Attributes:
        source: the run id, the same on every line.
        sequence: from 1, the line's number too; on the line a decimal string, and the CloudEvents `id`.
        type: begins with `orch.`.
        subject: what the event is about, never empty.
        time: wall clock of the controller, RFC 3339 in UTC with microseconds.
        monotonicns: monotonic clock of the controller, in nanoseconds; on the line a decimal string.
        prevhash: SHA-256 of the line before this one, without its newline; `GENESIS` on the first.
        data: what the event says, a JSON object.
    """

    source: str
    sequence: int
    type: str
    subject: str
    time: str
    monotonicns: int
    prevhash: str
    data: dict[str, Any]

    @property
    def id(self) -> str:
        """The CloudEvents id: unique within the source."""
        return str(self.sequence)

    def line(self) -> bytes:
        """Give the canonical JSON of the event, without a newline.

        Raises:
            EventError: an attribute breaks its rule, or the line would be longer than `MAX_LINE_BYTES`.
        """
        try:
            return self.line_around(dumps(self.data))
        except CanonicalError as error:
            raise EventError(f"data: {error}") from error

    def line_around(self, data: bytes) -> bytes:
        """Give the same line, where the canonical JSON of the data is at hand already.

        Raises:
            EventError: as `line`.
        """
        if not self.type.startswith(TYPE_PREFIX):
            raise EventError(f"an event type begins with {TYPE_PREFIX!r} (got {self.type!r})")
        if not self.source or not self.subject:
            raise EventError("source and subject may not be empty")
        try:
            # The attributes in canonical order; only the data can hold more than strings.
            line = (
                f'{{"data":{data.decode()},"id":"{self.sequence}",'
                f'"monotonicns":"{self.monotonicns}","prevhash":"{self.prevhash}",'
                f'"sequence":"{self.sequence}","source":{quote(self.source)},"specversion":"1.0",'
                f'"subject":{quote(self.subject)},"time":"{self.time}","type":{quote(self.type)}}}'
            ).encode()
        except UnicodeEncodeError as error:
            raise EventError("source, subject and type must be UTF-8") from error
        if len(line) >= MAX_LINE_BYTES:
            raise EventError(f"a line may hold {MAX_LINE_BYTES} bytes (got {len(line)})")
        return line


def parse(line: bytes) -> Event:
    """Read one line, without its newline.

    Raises:
        EventError: it is not the line of an event, byte for byte.
    """
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    event = _event(value)
    # Writing the event again decides everything else at once: canonical form, duplicate or unknown
    # attributes, a number that JSON does not keep. Only then is the slow reader asked what is wrong.
    if event is not None and event.line() == line:
        return event
    try:
        loads(line, canonical=True)
    except CanonicalError as error:
        raise EventError(str(error)) from error
    raise EventError(f"not an event with exactly the attributes {', '.join(sorted(_ATTRIBUTES))}")


def _event(value: Any) -> Event | None:
    if type(value) is not dict or value.keys() != _ATTRIBUTES or type(value["data"]) is not dict:
        return None
    if not all(type(value[name]) is str for name in _ATTRIBUTES if name != "data"):
        return None
    if not (
        _COUNT.fullmatch(value["sequence"])
        and _COUNT.fullmatch(value["monotonicns"])
        and _TIME.fullmatch(value["time"])
        and is_sha256(value["prevhash"])
    ):
        return None
    return Event(
        source=value["source"],
        sequence=int(value["sequence"]),
        type=value["type"],
        subject=value["subject"],
        time=value["time"],
        monotonicns=int(value["monotonicns"]),
        prevhash=value["prevhash"],
        data=value["data"],
    )
