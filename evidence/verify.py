"""Is a sealed bundle sound, file by file?

Knows the three accounts that a bundle gives of itself (the stream's sealing record, `qualification.json`,
`SHA256SUMS`) and compares each with the others and with the files. Must not know what any file means, and
trusts nothing that it reads: names, sizes, nesting and kinds of file are all an adversary's to choose.

Whoever can write all three can write a sound bundle. Only the seal or the head, kept elsewhere, exclude that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from evidence.bundle import DERIVED, MAX_DOCUMENT_BYTES, is_sealed, read_qualification
from evidence.canonical import dumps, loads
from evidence.digest import measure_file, sha256_bytes, sha256_json
from evidence.event import Event
from evidence.files import read_bounded
from evidence.listing import (
    ATTESTATIONS,
    QUALIFICATION,
    STREAM,
    SUMS,
    File,
    FormatError,
    Kind,
    Problem,
    Walk,
    entries,
    is_content,
    read_entries,
    read_sums,
    walk,
)
from evidence.names import printable
from evidence.stream import StreamError, Tail, scan

__all__ = ["Kind", "Problem", "is_sealed", "read_qualification", "verify"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class _Qualification:
    """`qualification.json` as read: its digest, the caller's part of it, and what sealing added."""

    sha256: str
    given: Mapping[str, Any]
    stream: Any
    files: Mapping[str, File]


def verify(bundle: Path, *, seal: str | None = None, head: str | None = None) -> tuple[Problem, ...]:
    """Find everything wrong with a sealed bundle; nothing found means that it is sound. Never raises.

    Args:
        bundle: its folder.
        seal: the digest of `qualification.json` that somebody was told, if any.
        head: the stream's head that somebody kept, if any.
    """
    found = walk(bundle)
    problems = set(found.problems)
    missing = [name for name in (STREAM, QUALIFICATION, SUMS) if name not in found.sizes]
    problems.update(Problem(name, Kind.UNSEALED, "missing: not sealed, or taken away") for name in missing)
    qualification = _read(bundle, QUALIFICATION, _read_qualification, problems)
    sums = _read(bundle, SUMS, read_sums, problems)
    problems.update(_names(found, qualification, sums))
    problems.update(_contents(bundle, found, qualification, sums))
    if STREAM in found.sizes:
        problems.update(_stream(bundle, qualification, head))
    if qualification and seal is not None and qualification.sha256 != seal:
        message = f"not the bundle of that seal (got {qualification.sha256}, expected {seal})"
        problems.add(Problem(QUALIFICATION, Kind.SEAL, message))
    return tuple(sorted(problems))


def _read(bundle: Path, name: str, parse: Callable[[bytes], _T], problems: set[Problem]) -> _T | None:
    try:
        return parse(read_bounded(bundle / name, MAX_DOCUMENT_BYTES))
    except FileNotFoundError:
        return None  # said already
    except OSError as error:
        problems.add(Problem(name, Kind.UNREADABLE, str(error.strerror)))
    except ValueError as error:
        problems.add(Problem(name, Kind.FORMAT, str(error)))
    return None


def _read_qualification(data: bytes) -> _Qualification:
    value = loads(data, canonical=True)
    if not isinstance(value, dict) or not value.keys() >= DERIVED:
        raise FormatError("not an object with at least stream and files")
    files = {file.name: file for file in read_entries(value["files"])}
    if STREAM not in files or not any(map(is_content, files)):
        raise FormatError(f"the listing must hold {STREAM} and at least one other file")
    if strange := [name for name in files if name != STREAM and not is_content(name)]:
        raise FormatError(f"the listing may not hold {strange[0]}")
    given = {key: item for key, item in value.items() if key not in DERIVED}
    return _Qualification(sha256_bytes(data), given, value["stream"], files)


def _disagree(one: str, other: str, message: str) -> Iterator[Problem]:
    """Name both files: nothing says which of the two is right."""
    yield Problem(one, Kind.DISAGREES, f"with {other}: {message}")
    yield Problem(other, Kind.DISAGREES, f"with {one}: {message}")


def _names(
    found: Walk, qualification: _Qualification | None, sums: Mapping[str, str] | None
) -> Iterator[Problem]:
    """Compare the sets of names: what lies there, what either listing holds."""
    listed: set[str] = set()
    if qualification:
        listed |= {*qualification.files, QUALIFICATION}
    if sums is not None:
        listed |= sums.keys()
    if qualification and sums is not None:
        for name in sorted(sums.keys() ^ {*qualification.files, QUALIFICATION}):
            yield from _disagree(QUALIFICATION, SUMS, f"only one of them lists {name}")
    for name in listed - found.sizes.keys() - {QUALIFICATION}:
        yield Problem(name, Kind.MISSING, "listed, but there is no such file")
    for name in found.sizes:
        if name.startswith(f"{ATTESTATIONS}/"):
            yield Problem(name, Kind.ATTESTATION, "no kind of attestation is known that could verify this")
        elif name not in listed and name != SUMS:
            # Also in views/: nothing writes a view yet, so that whatever lies there is a stranger's.
            yield Problem(name, Kind.EXTRA, "no listing holds it")


def _contents(
    bundle: Path, found: Walk, qualification: _Qualification | None, sums: Mapping[str, str] | None
) -> Iterator[Problem]:
    """Compare the digests: of what lies there, and what either listing holds."""
    files = qualification.files if qualification else {}
    sums = sums or {}
    if qualification and sums.get(QUALIFICATION, qualification.sha256) != qualification.sha256:
        yield from _disagree(QUALIFICATION, SUMS, f"on the digest of {QUALIFICATION}")
    for name in sorted(found.sizes.keys() & (files.keys() | sums.keys())):
        file = files.get(name)
        expected = {file.sha256} if file else set()
        if name in sums:
            expected.add(sums[name])
        if file and name in sums and file.sha256 != sums[name]:
            yield from _disagree(QUALIFICATION, SUMS, f"on the digest of {name}")
        if file and file.size != found.sizes[name]:
            # Not hashed: a file of the wrong size is wrong, and may be of any size.
            yield Problem(name, Kind.SIZE, f"got {found.sizes[name]} bytes, expected {file.size}")
            continue
        try:
            sha256, _ = measure_file(bundle / name)
        except OSError as error:
            yield Problem(name, Kind.UNREADABLE, str(error.strerror))
            continue
        if expected != {sha256}:
            yield Problem(name, Kind.DIGEST, f"got {sha256}, expected {' or '.join(sorted(expected))}")


def _stream(bundle: Path, qualification: _Qualification | None, head: str | None) -> Iterator[Problem]:
    """Follow the chain to its sealing record, and compare that with `qualification.json`."""
    event: Event | None = None
    tail = Tail()
    try:
        for event, tail in scan(bundle / STREAM):  # noqa: B007 - the last of each is what counts
            pass
    except StreamError as error:
        yield Problem(STREAM, Kind.CHAIN, printable(str(error)))
        return
    except OSError as error:
        yield Problem(STREAM, Kind.UNREADABLE, str(error.strerror))
        return
    if head is not None and tail.head != head:
        yield Problem(STREAM, Kind.HEAD, f"not the stream of that head (got {tail.head}, expected {head})")
    if event is None or not tail.sealed:
        yield Problem(STREAM, Kind.UNSEALED, "does not end in a sealing record")
        return
    if qualification:
        for what, same in _agreement(event, tail, qualification):
            if not same:
                yield from _disagree(STREAM, QUALIFICATION, f"on the {what}")


def _agreement(event: Event, tail: Tail, qualification: _Qualification) -> Iterator[tuple[str, bool]]:
    """Say for each thing that both hold whether they hold the same; as bytes, since 1 == True in Python."""
    given, record = qualification.given, event.data
    content = [file for name, file in qualification.files.items() if is_content(name)]
    stream = {"head": tail.head, "records": tail.records}
    yield "stream's head and number of records", dumps(qualification.stream) == dumps(stream)
    yield "qualification", dumps(record.get("qualification")) == dumps(given)
    yield "verdict", isinstance(given.get("verdict"), str) and given["verdict"] == record.get("verdict")
    yield "run id", given.get("run_id", event.source) == event.source
    yield "number of files", dumps(record.get("files")) == dumps(len(content))
    yield "listing of files", record.get("listing") == sha256_json(entries(content))
