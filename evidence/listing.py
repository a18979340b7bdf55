"""What lies in a bundle's folder: its files with digests and sizes, and everything that must not lie there.

Knows the bundle's own file names, the form of a listing, and the walk. Must not know what the files mean.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from evidence.digest import is_sha256, measure_file
from evidence.names import fault, printable

STREAM: Final = "stream.jsonl"
QUALIFICATION: Final = "qualification.json"
SUMS: Final = "SHA256SUMS"
ATTESTATIONS: Final = "attestations"
VIEWS: Final = "views"  # for what is derived from a bundle; nothing writes one yet


class FormatError(ValueError):
    """A listing or a document is not in the form that sealing writes."""


class Kind(StrEnum):
    """What is wrong with a file of a bundle."""

    MISSING = "missing"
    EXTRA = "extra"
    DIGEST = "digest"
    SIZE = "size"
    LINK = "link"
    SPECIAL = "special"
    EMPTY_FOLDER = "empty-folder"
    NAME = "name"
    UNREADABLE = "unreadable"
    FORMAT = "format"
    CHAIN = "chain"
    UNSEALED = "unsealed"
    DISAGREES = "disagrees"
    SEAL = "seal"
    HEAD = "head"
    ATTESTATION = "attestation"


@dataclass(frozen=True, order=True)
class Problem:
    """One thing wrong with a bundle.

    Attributes:
        name: the file, relative to the bundle, with hostile characters escaped; "." for the bundle itself.
        kind: what is wrong, for programs.
        message: what is wrong, for people.
    """

    name: str
    kind: Kind
    message: str

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}: {self.message}"


@dataclass(frozen=True, slots=True)
class File:
    """One file of a listing: its digest, and its size in bytes."""

    name: str
    sha256: str
    size: int

    def entry(self) -> dict[str, Any]:
        """Give the file as a listing in JSON holds it."""
        return {"name": self.name, "sha256": self.sha256, "size": self.size}


@dataclass(frozen=True)
class Walk:
    """What lies in a folder.

    Attributes:
        sizes: bytes of every regular file that has a good name, by that name.
        problems: everything else, but for good folders that hold something.
    """

    sizes: Mapping[str, int]
    problems: tuple[Problem, ...]


def walk(root: Path) -> Walk:
    """Walk a bundle's folder without following any link. Never raises: what cannot be read is a problem."""
    sizes: dict[str, int] = {}
    problems: list[Problem] = []
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(root / folder) as found:
                entries = tuple(found)
        except OSError as error:
            problems.append(Problem(printable(folder) or ".", Kind.UNREADABLE, str(error.strerror)))
            continue
        if not entries and folder not in {"", ATTESTATIONS, VIEWS}:
            problems.append(Problem(folder, Kind.EMPTY_FOLDER, "a folder that holds no file"))
        for entry in entries:
            name = f"{folder}/{entry.name}" if folder else entry.name
            problem = _problem(entry, name)
            if problem:
                problems.append(problem)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(name)
            else:
                sizes[name] = entry.stat(follow_symlinks=False).st_size
    return Walk(sizes, tuple(sorted(problems)))


def is_content(name: str) -> bool:
    """Say whether the sealing record covers a file: not sealing's own, and not in a folder that may grow."""
    return name not in {STREAM, QUALIFICATION, SUMS} and name.partition("/")[0] not in {ATTESTATIONS, VIEWS}


def measure(root: Path, names: Iterable[str]) -> tuple[File, ...]:
    """Give the listing of the named files, in byte order of their names.

    Raises:
        OSError: one of them is no regular file, or cannot be read.
    """
    # The order of code points is the byte order of UTF-8.
    return tuple(File(name, *measure_file(root / name)) for name in sorted(names))


def entries(files: Iterable[File]) -> list[dict[str, Any]]:
    """Give a listing as JSON."""
    return [file.entry() for file in files]


def read_entries(value: Any) -> tuple[File, ...]:
    """Read a listing from JSON.

    Raises:
        FormatError: it is not one, or not in byte order without repetition.
    """
    if not isinstance(value, list):
        raise FormatError("the listing is not an array")
    files = []
    for item in value:
        if not isinstance(item, dict) or item.keys() != {"name", "sha256", "size"}:
            raise FormatError("a listed file has exactly name, sha256 and size")
        name, sha256, size = item["name"], item["sha256"], item["size"]
        if not isinstance(name, str) or not is_sha256(sha256) or type(size) is not int or size < 0:
            raise FormatError("a listed file has a string, a digest and a size")
        files.append(File(name, sha256, size))
    _check_order([file.name for file in files])
    return tuple(files)


def sums_text(files: Iterable[File]) -> bytes:
    """Give a listing in the text format that `sha256sum --check` reads."""
    return "".join(f"{file.sha256}  {file.name}\n" for file in files).encode()


def read_sums(data: bytes) -> dict[str, str]:
    """Read digests by name from the text format.

    Raises:
        FormatError: any line is not exactly as `sums_text` writes it, or out of byte order, or repeated.
    """
    sums = dict(_sums_lines(data))
    if data.count(b"\n") != len(sums):
        raise FormatError("a name is repeated, or the last line is incomplete")
    _check_order(list(sums))
    return sums


def _sums_lines(data: bytes) -> Iterator[tuple[str, str]]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"byte {error.start}: not UTF-8") from error
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        sha256, gap, name = line[:64], line[64:66], line[66:]
        if not is_sha256(sha256) or gap != "  ":
            raise FormatError(f"line {number} is not a digest, two spaces and a name")
        yield name, sha256


def _check_order(names: list[str]) -> None:
    for before, name in pairwise(names):
        if name <= before:
            raise FormatError(f"not in byte order: {printable(before)}, {printable(name)}")
    for name in names:
        if wrong := fault(name):
            raise FormatError(f"{printable(name)}: {wrong}")


def _problem(entry: os.DirEntry[str], name: str) -> Problem | None:
    if wrong := fault(name):
        return Problem(printable(name), Kind.NAME, wrong)
    try:
        if entry.is_symlink():
            return Problem(name, Kind.LINK, "a symbolic link")
        if not entry.is_dir(follow_symlinks=False) and not entry.is_file(follow_symlinks=False):
            return Problem(name, Kind.SPECIAL, "neither a file nor a folder")
        entry.stat(follow_symlinks=False)
    except OSError as error:
        return Problem(name, Kind.UNREADABLE, str(error.strerror))
    return None
