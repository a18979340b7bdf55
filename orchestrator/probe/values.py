"""What a tool says of one thing: known, not supported, broken, or not told at all.

Knows the words in which NVIDIA's tools say each of these; must not know what any value is for. Not supported
is unknown, never zero; broken in a field that matters refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, Literal, TypeVar

T = TypeVar("T")
State = Literal["known", "unsupported", "broken", "untold"]

MOST_MINOR: Final = 255
"""The minor of `/dev/nvidiactl`: every card's is below it."""
MOST_CARDS: Final = MOST_MINOR
"""Whoever tells of more than have a minor is not taken at their word; one more is enough to see that."""
_LONGEST: Final = 200
_UNSUPPORTED: Final = (
    "n/a",
    "not supported",
    "not found",
    "not available",
    "not available in wddm driver model",
    "requested functionality has been deprecated",
    "insufficient permissions",
)
_BUS: Final = re.compile(
    r"(?:GPU ?)?([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-9a-f])", re.ASCII | re.IGNORECASE
)
_UUID: Final = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_NUMBER: Final = re.compile(r"([0-9]{1,12})(?: ?(?:MiB|MB|%))?", re.ASCII)
_REMARK: Final = re.compile(r" \[Deprecated\b[^]]*\]")
"""From 610 on, what is told under another name too says so behind its value."""
_WIDTH: Final = re.compile(r"([0-9]{1,2})x?", re.ASCII)
_DRIVER: Final = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,5}){1,3}", re.ASCII)
_CAPABILITY: Final = re.compile(r"[0-9]{1,2}\.[0-9]", re.ASCII)


@dataclass(frozen=True)
class Value(Generic[T]):
    """One thing that was asked for.

    Attributes:
        state: `known`; `unsupported` (the tool says that it cannot be told: unknown, never zero); `broken`
            (an error stands in its place, or text that does not read as what it must be); `untold`.
        known: the value; None unless it is known.
        text: the tool's own word for it, one line without brackets; empty where nothing was told.
    """

    state: State
    known: T | None = None
    text: str = field(default="", compare=False)

    def __str__(self) -> str:
        """As it is shown: the value, or why there is none."""
        if self.state == "known":
            return str(self.known)
        return self.text or ("not told" if self.state == "untold" else self.state)

    def as_json(self) -> object:
        """The value, or an object that says why there is none."""
        return self.known if self.state == "known" else {"state": self.state, "text": self.text}


def untold() -> Value[T]:
    """A value of which nothing was said."""
    return Value("untold")


def broken(text: str) -> Value[T]:
    """A value in whose place an error stands, or something that cannot be what it must be."""
    return Value("broken", None, one_line(text))


def one_line(text: str, longest: int = _LONGEST) -> str:
    """Text of a stranger's as it may be shown: printable, on one line, bounded."""
    text = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * longest]).split())
    return text if len(text) <= longest else text[: longest - 3] + "..."


def read(text: str | None, as_value: Callable[[str], T | None]) -> Value[T]:
    """Read what a tool printed for one thing.

    Args:
        text: as printed, in brackets or not; None where the thing was not told.
        as_value: gives the value, or None where the text does not read as one.
    """
    if text is None:
        return Value("untold")
    shown = _REMARK.sub("", one_line(text))
    bare = shown[1:-1].strip() if shown.startswith("[") and shown.endswith("]") else shown
    if bare.lower() in _UNSUPPORTED:
        return Value("unsupported", None, bare)
    value = as_value(bare)
    return Value("broken", None, bare or "nothing") if value is None else Value("known", value, bare)


def either(first: Value[T], second: Value[T]) -> Value[T]:
    """What is told under two names: the first that is known, or the first that is told."""
    if first.state == "known" or second.state == "untold":
        return first
    return second if second.state == "known" or first.state == "untold" else first


def bus_id(text: str) -> str | None:
    """A PCI address with a domain of eight upper-case digits, whatever tool it was written by."""
    match = _BUS.fullmatch(text)
    if match is None:
        return None
    domain, bus, device, function = (part.upper() for part in match.groups())
    return f"{domain:0>8}:{bus}:{device}.{function}"


def uuid(text: str) -> str | None:
    """A card's UUID, lower-case behind `GPU-`."""
    return text if _UUID.fullmatch(text) else None


def whole(text: str) -> int | None:
    """A whole number, with or without MiB or percent."""
    match = _NUMBER.fullmatch(text)
    return int(match[1]) if match else None


def minor(text: str) -> int | None:
    """A minor number."""
    number = whole(text) if text.isdecimal() else None
    return number if number is not None and number < MOST_MINOR else None


def width(text: str) -> int | None:
    """A link's lanes: `16x` or `16`."""
    match = _WIDTH.fullmatch(text)
    return int(match[1]) if match else None


def driver(text: str) -> str | None:
    """A driver's release: two parts or more."""
    return text if _DRIVER.fullmatch(text) else None


def capability(text: str) -> str | None:
    """A compute capability: `8.6`."""
    return text if _CAPABILITY.fullmatch(text) else None


_ERRORS: Final = ("err!", "unknown error", "unknown", "reset", "is lost", "fallen off")


def word(text: str) -> str | None:
    """A word or name that is no error's."""
    low = text.lower()
    is_error = low in _ERRORS[:3] or any(each in low for each in ("requires reset", *_ERRORS[4:]))
    return None if not text or is_error else text
