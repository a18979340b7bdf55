"""One file as plain values, each with the line and column of its own text and of its key.

Knows bytes, encodings and the two notations (YAML, TOML); must not know what any key means. What a notation
allows but a declaration must not use (anchors, merge keys, dates, not-a-number) is refused here, so that a
value that comes out means the same to every reader.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from orchestrator.errors import Label, Refusal, Where
from orchestrator.spec.places import Collector, KeyPath, Lines, Place, dotted

MAX_BYTES = 1 << 20
_KEPT = 64
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")


@dataclass(frozen=True)
class Document:
    """A file that could be taken apart: its plain values and where each of them stands.

    Attributes:
        path: the file, as it is to be shown.
        text: the whole file, without a byte order mark.
        value: dict, list, str, int, float, bool and None only; None where a part was refused.
        places: where every key and value begins, by key path.
    """

    path: Path
    text: str
    value: Any
    places: Mapping[KeyPath, Place]

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self.text)

    def where(self, key_path: Sequence[str | int], *, key: bool = False) -> Where:
        """Gives the place of a value, or of its key; of the nearest parent's key, if it is not there."""
        path = tuple(key_path)
        while path and path not in self.places:
            path, key = path[:-1], True
        place = self.places.get(path)
        if place is None:
            return Where(str(self.path))
        line, column = place.key if key and place.key else place.value
        return Where(str(self.path), line, column)

    def at(
        self,
        label: Label,
        message: str,
        key_path: Sequence[str | int],
        *,
        on_key: bool = False,
        hint: str = "",
    ) -> Refusal:
        """Makes a refusal at a place of this file; `on_key=True` points at the key, `hint` is the way out."""
        return Refusal(label, message, self.where(key_path, key=on_key), dotted(key_path), hint)

    def get(self, *key_path: str | int) -> Any:
        """Gives the value at a key path, or None where there is none."""
        value = self.value
        for step in key_path:
            if isinstance(step, str) and isinstance(value, dict):
                value = value.get(step)
            elif isinstance(step, int) and isinstance(value, list) and step < len(value):
                value = value[step]
            else:
                return None
        return value

    def inner(self, key_path: Sequence[str | int]) -> Where | None:
        """Gives the place of the first character of a text, inside its quotes.

        None where the text in the file is not, character by character, the value (escapes, folded blocks),
        so that an offset into the value would point at a wrong place.
        """
        value = self.get(*key_path)
        place = self.places.get(tuple(key_path))
        if not isinstance(value, str) or "\n" in value or place is None:
            return None
        start = self._lines.offset(place.value)
        for skip in (0, 1, 3):  # plain, in quotes, in three of TOML's
            if value and self.text.startswith(value, start + skip):
                return Where(str(self.path), place.value[0], place.value[1] + skip)
        return None


def load(path: Path, data: bytes | None = None) -> tuple[Document | None, tuple[Refusal, ...]]:
    """Reads one file, `.toml` as TOML and any other as YAML 1.2.

    Args:
        path: the file; also what its places are called.
        data: its bytes, if they are at hand already; else they are read.

    Returns:
        The document, with every part that could be read, and the refusals, in file order. The document is
        None where nothing in the file can be trusted to stand where it seems to: no text, or no syntax.
    """
    if data is None:
        data, refusal = read_bytes(path, MAX_BYTES)
        if refusal is not None:
            return None, (refusal,)
        assert data is not None  # noqa: S101 - one of the two is always given
    text, refusal = decode(path, data)
    if text is None:
        return None, (refusal,) if refusal else ()
    is_toml = path.suffix == ".toml"
    if (known := _faultless(text, is_toml=is_toml)) is not None:
        return Document(path, text, *known), ()
    collector, value, complete = _parsed(str(path), text, is_toml=is_toml)
    refusals = tuple(sorted(collector.refusals, key=lambda refusal: refusal.where))
    return Document(path, text, value, collector.places) if complete else None, refusals


def _parsed(path: str, text: str, *, is_toml: bool) -> tuple[Collector, Any, bool]:
    """Takes a text apart: what was refused and where all stands, the values, whether they can be trusted."""
    if is_toml:
        from orchestrator.spec.toml_document import parse
    else:
        from orchestrator.spec.yaml_document import parse
    collector = Collector(path, Lines(text))
    return collector, *parse(text, collector)


@lru_cache(maxsize=_KEPT)
def _faultless(text: str, *, is_toml: bool) -> tuple[Any, Mapping[KeyPath, Place]] | None:
    """Gives what a text says and where, if nothing is wrong with it.

    Kept, since one run reads the same text again and again: the user's file, its copy in the bundle, the copy
    as each judge sees it. Nobody changes a document's values.
    """
    collector, value, complete = _parsed("", text, is_toml=is_toml)
    return (value, collector.places) if complete and not collector.refusals else None


def read_bytes(path: Path, limit: int) -> tuple[bytes | None, Refusal | None]:
    """Reads a regular file of at most `limit` bytes, or says why not."""
    where = Where(str(path))
    try:
        # O_NONBLOCK: opening a named pipe must not wait for its writer
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            data = file.read(limit + 1) if regular else b""
    except (FileNotFoundError, NotADirectoryError):
        return None, Refusal(
            Label.FILE_MISSING, "there is no such file (got nothing, expected a file)", where
        )
    except IsADirectoryError:
        return None, Refusal(Label.FILE_UNREADABLE, "cannot be read (got a folder, expected a file)", where)
    except (OSError, ValueError, TypeError) as error:
        reason = (
            error.strerror if isinstance(error, OSError) and error.strerror else "a name no file can have"
        )
        return None, Refusal(Label.FILE_UNREADABLE, f"cannot be read (got: {reason}, expected a file)", where)
    if not regular:
        message = "cannot be read (got a pipe or a device, expected a file)"
        return None, Refusal(Label.FILE_UNREADABLE, message, where)
    if len(data) > limit:
        return None, Refusal(
            Label.FILE_UNREADABLE,
            f"is too large (got more than {limit} bytes, expected at most {limit})",
            where,
        )
    return data, None


def decode(path: Path, data: bytes) -> tuple[str | None, Refusal | None]:
    """Turns bytes into text: UTF-8, with or without a byte order mark, and no control characters."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = Lines(data[: error.start].decode("utf-8") + "?").place(
            len(data[: error.start].decode())
        )
        where = Where(str(path), line, column)
        message = f"is not UTF-8 text (got byte 0x{data[error.start]:02x}, expected UTF-8)"
        return None, Refusal(Label.FILE_UNREADABLE, message, where)
    if match := _CONTROL.search(text):
        line, column = Lines(text).place(match.start())
        message = f"holds a control character (got U+{ord(match[0]):04X}, expected text)"
        return None, Refusal(Label.SYNTAX, message, Where(str(path), line, column))
    return text, None
