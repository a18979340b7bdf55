"""Sealing a bundle, in an order that survives being killed anywhere.

    1  the stream's sealing record: the verdict, the qualification, the digest of the listing of all files
    2  qualification.json: the qualification, the stream's head and the files, the stream among them
    3  SHA256SUMS: all files but itself

Knows that order and these three. Must not know what the qualification says, but for its verdict and its run
id. Steps 2 and 3 follow from step 1 and the files alone, so that sealing again finishes what was begun and
gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from evidence.canonical import dumps, loads
from evidence.digest import sha256_bytes, sha256_json
from evidence.files import part_name, read_bounded, write_whole
from evidence.listing import (
    QUALIFICATION,
    STREAM,
    SUMS,
    File,
    FormatError,
    Kind,
    entries,
    is_content,
    measure,
    sums_text,
    walk,
)
from evidence.stream import SEALED, Stream

MAX_DOCUMENT_BYTES: Final = 64 << 20
DERIVED: Final = frozenset(("stream", "files"))  # what sealing adds to a qualification


class SealError(Exception):
    """The bundle cannot be sealed as it lies there; the message names the files."""


def seal(bundle: Path, stream: Stream, verdict: str, qualification: Mapping[str, Any]) -> str:
    """Seal a bundle, or finish sealing it, and give the seal: the SHA-256 of `qualification.json`.

    Empty folders are removed first: a listing of files cannot hold them. When the stream ends in a sealing
    record already, the qualification recorded there stands, and the one given is not looked at.

    Args:
        bundle: the folder; every writer in it has ended.
        stream: its stream, open.
        verdict: what the bundle proves.
        qualification: a JSON object, without `stream` and `files`; a `verdict` in it must be the same, and a
            `run_id` must be the stream's source.

    Raises:
        SealError: there is a link, a special file or a bad name; there is no file at all; the verdict is
            another one than was recorded; or files changed since a sealing record was written.
        CanonicalError, OSError, StreamError: as their modules say.
    """
    for key, value in (("verdict", verdict), ("run_id", stream.source)):
        if qualification.get(key, value) != value:
            raise SealError(
                f"the qualification has another {key} (got {qualification[key]!r}, expected {value!r})"
            )
    if taken := DERIVED & qualification.keys():
        raise SealError(f"the qualification may not hold {', '.join(sorted(taken))}: sealing adds them")
    for name in (QUALIFICATION, SUMS):
        (bundle / part_name(name)).unlink(missing_ok=True)
    names = _names(bundle)
    content = measure(bundle, filter(is_content, names))
    if not content:
        raise SealError("a bundle of no files proves nothing")
    record = {"verdict": verdict, "listing": sha256_json(entries(content)), "files": len(content)}
    if not stream.sealed:
        stream.append(SEALED, "bundle", {**record, "qualification": {**qualification, "verdict": verdict}})
    sealed = stream.events[-1].data
    if changed := [key for key, value in record.items() if sealed.get(key) != value]:
        raise SealError(f"changed since the sealing record was written: {', '.join(changed)}")
    return _write(bundle, stream, sealed["qualification"], content)


def read_qualification(bundle: Path) -> Mapping[str, Any]:
    """Read a bundle's `qualification.json`, without verifying anything else.

    Raises:
        CanonicalError: it is not canonical JSON.
        FormatError: it is no JSON object.
        OSError: it cannot be read.
    """
    value = loads(read_bounded(bundle / QUALIFICATION, MAX_DOCUMENT_BYTES), canonical=True)
    if not isinstance(value, dict):
        raise FormatError(f"{QUALIFICATION} is not a JSON object")
    return value


def is_sealed(bundle: Path) -> bool:
    """Say whether sealing has finished: the last file that it writes is there."""
    return all((bundle / name).is_file() for name in (STREAM, QUALIFICATION, SUMS))


def _names(bundle: Path) -> Iterable[str]:
    found = walk(bundle)
    while empty := [problem.name for problem in found.problems if problem.kind is Kind.EMPTY_FOLDER]:
        for name in empty:
            (bundle / name).rmdir()
        found = walk(bundle)
    if found.problems:
        raise SealError("\n".join(map(str, found.problems)))
    return found.sizes.keys()


def _write(bundle: Path, stream: Stream, qualification: Mapping[str, Any], content: tuple[File, ...]) -> str:
    files = sorted((*content, *measure(bundle, [STREAM])), key=lambda file: file.name)
    tail = {"head": stream.head, "records": stream.records}
    document = dumps({**qualification, "stream": tail, "files": entries(files)})
    sha256 = sha256_bytes(document)
    files = sorted((*files, File(QUALIFICATION, sha256, len(document))), key=lambda file: file.name)
    for name, data in ((QUALIFICATION, document), (SUMS, sums_text(files))):
        _write_once(bundle / name, data)
    return sha256


def _write_once(path: Path, data: bytes) -> None:
    """Write a file that is not there yet; one that is there must hold the same bytes."""
    if not path.exists():
        write_whole(path, data)
    elif read_bounded(path, len(data)) != data:
        raise SealError(f"{path.name} exists already and says something else")
