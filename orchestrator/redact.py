"""Secrets of this machine's environment, which no bundle, log or database may hold.

Knows which variables say by their names that they are secret, the forms in which a value turns up in what
programs write, and what stands in its place. Must not know where anything is written: whoever writes asks.

Found are a value as it is, each long line of one that has several, and a value as JSON, Python, a URL,
hexadecimal digits or base64 (both alphabets, alone or in the middle of something) write it. Not found is what
was compressed, encrypted, hashed, taken apart, or broken over lines of base64.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from orchestrator.errors import Label, Refusal, Where

MARK: Final = "[redacted]"
LEAST_CHARS: Final = 8
_LEAST_LINE: Final = 16
_SECRET = re.compile("TOKEN|SECRET|KEY|PASSWORD|PASSWD|CREDENTIAL|AUTH(?!OR)|AUTHORIZ", re.IGNORECASE)
_HARMLESS = re.compile("KEYBOARD|KEYMAP|KEYRING", re.IGNORECASE)
_GROUP: Final = 3  # bytes of base64's four characters


@dataclass(frozen=True)
class Secrets:
    """Values by the name of the variable that has each; none of them is ever shown."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, environment: Mapping[str, str], names: Iterable[str] = ()) -> Secrets:
        """Gives the secrets of an environment.

        Args:
            environment: of this process.
            names: variables that are secret whatever they are called.

        Returns:
            Those of at least `LEAST_CHARS` characters; where one is kept in a file, the file's path is none.
        """
        named = frozenset(names)
        found = {
            name: value.strip()
            for name, value in environment.items()
            if name in named or (_SECRET.search(_HARMLESS.sub("", name)) and not _is_place(value.strip()))
        }
        return cls({name: value for name, value in found.items() if len(value) >= LEAST_CHARS})

    @classmethod
    def here(cls, names: Iterable[str] = ()) -> Secrets:
        """Gives the secrets of this process's environment."""
        return cls.of(os.environ, names)

    def redact(self, data: bytes) -> bytes:
        """Gives the bytes with `MARK` in place of every secret."""
        return self._any.sub(MARK.encode(), data) if self.values else data

    def text(self, text: str) -> str:
        """Gives the text with `MARK` in place of every secret."""
        if not self.values:
            return text
        return self.redact(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def json(self, value: Any) -> Any:
        """Gives a JSON value with `MARK` in place of every secret in its texts and keys."""
        if not self.values:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.json(key): self.json(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.json(each) for each in value]
        return value

    def files(self, files: Mapping[Path, bytes]) -> tuple[dict[Path, bytes], tuple[Path, ...]]:
        """Gives files without secrets, and which of them held one."""
        clean = {path: self.redact(data) for path, data in files.items()}
        return clean, tuple(path for path, data in files.items() if data != clean[path])

    def refusals(self, paths: Iterable[Path]) -> tuple[Refusal, ...]:
        """Refuses files that hold a secret; one that cannot be read is refused by who reads it for good."""
        return tuple(refusal for path in paths for refusal in self._in_file(path)) if self.values else ()

    def _in_file(self, path: Path) -> Iterator[Refusal]:
        try:
            data = path.read_bytes()
        except OSError:
            return
        for name, pattern in self._each.items():
            if found := pattern.search(data):
                before = data[: found.start()]
                start = before.rfind(b"\n") + 1
                place = (before.count(b"\n") + 1, len(before[start:].decode("utf-8", "replace")) + 1)
                message = f"holds a secret of this machine (got the value of {name}, expected none of it)"
                hint = "take it out; `inherit` names what a program is to have of its node's environment"
                yield Refusal(Label.SECRET_IN_FILE, message, Where(str(path), *place), hint=hint)

    @cached_property
    def _any(self) -> re.Pattern[bytes]:
        return _pattern(form for value in self.values.values() for form in _forms(value))

    @cached_property
    def _each(self) -> Mapping[str, re.Pattern[bytes]]:
        return {name: _pattern(_forms(value)) for name, value in self.values.items()}


def _is_place(value: str) -> bool:
    """Says whether a value is only where something is: a key's file, an agent's socket."""
    return value.startswith(("/", "~")) and os.path.lexists(os.path.expanduser(value))  # noqa: PTH111 - never raises


def _pattern(forms: Iterable[bytes]) -> re.Pattern[bytes]:
    """Matches any of the forms, at each place the longest."""
    return re.compile(
        b"|".join(re.escape(form) for form in sorted(set(forms), key=lambda form: (-len(form), form)))
    )


def _forms(value: str) -> Iterator[bytes]:
    """Gives the ways in which a value may be written."""
    import json
    from urllib.parse import quote, quote_plus

    lines = [line.strip() for line in value.splitlines()]
    for part in {value, *(line for line in lines if len(line) >= _LEAST_LINE)}:
        raw = part.encode("utf-8", "surrogateescape")
        yield raw
        for written in (json.dumps(part), json.dumps(part, ensure_ascii=False), repr(part)):
            yield written[1:-1].encode("utf-8", "surrogateescape")
        yield quote(raw, safe="").encode()
        yield quote_plus(raw).encode()
        yield raw.hex().encode()
        yield raw.hex().upper().encode()
        yield from _base64(raw)


def _base64(raw: bytes) -> Iterator[bytes]:
    """Gives the characters that every base64 text with these bytes in it has, wherever they begin in it."""
    from base64 import b64encode

    for before in range(_GROUP):
        data = bytes(before) + raw
        core = b64encode(data)[-(-8 * before // 6) : 8 * len(data) // 6]
        yield core
        yield core.translate(bytes.maketrans(b"+/", b"-_"))
