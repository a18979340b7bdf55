"""An ELF file as far as we look at it.

Knows pyelftools, whose errors do not leave this module; knows nothing about what our programs must be.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from elftools.elf.elffile import ELFFile

# Ours have a dozen, of a few KiB; what a hostile file says of itself goes to 2^64.
MOST_ENTRIES = 64
MOST_BYTES = 1 << 20
_MOST_OF_A_NAME = 64


class UnreadableError(ValueError):
    """The bytes are no ELF file that can be read."""


@dataclass(frozen=True)
class Section:
    """A named part of the file.

    Attributes:
        name: as in the section name table, as much of it as could be one of ours.
        kind: `SHT_PROGBITS`, ...
        offset: where it begins in the file.
        size: bytes.
    """

    name: str
    kind: str
    offset: int
    size: int
    _file: bytes = field(repr=False, compare=False)

    @property
    def data(self) -> bytes:
        """Its bytes in the file; shorter than `size` if the file ends before, empty for `SHT_NOBITS`.

        Sections of a hostile file may all be the whole file, so each is cut out only where it is looked at.
        """
        return b"" if self.kind == "SHT_NOBITS" else self._file[self.offset : self.offset + self.size]


@dataclass(frozen=True)
class Segment:
    """A part of memory as the kernel will map it.

    Attributes:
        kind: `PT_LOAD`, ...
        flags: letters of `R`, `W`, `X`.
        offset: where it begins in the file.
        file_size: bytes in the file.
        memory_size: bytes in memory.
    """

    kind: str
    flags: str
    offset: int
    file_size: int
    memory_size: int


@dataclass(frozen=True)
class Linking:
    """What a dynamic file asks of the machine that loads it, in file order.

    Attributes:
        interpreters: paths of programs that are to load it.
        needed: libraries.
        imports: names that they must have.
        exports: names that it has for them.
    """

    interpreters: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    exports: tuple[str, ...] = ()


@dataclass(frozen=True)
class Image:
    """An ELF file.

    Attributes:
        bits: 32 or 64.
        little_endian: byte order.
        kind: `ET_EXEC`, `ET_DYN`, ...
        machine: `EM_X86_64`, ...
        entry: address of the first instruction.
        segments: in file order.
        sections: in file order.
        linking: what a dynamic file says of others, nothing where it cannot be read; None of a static one.
    """

    bits: int
    little_endian: bool
    kind: str
    machine: str
    entry: int
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]
    linking: Linking | None

    def sections_named(self, name: str) -> tuple[Section, ...]:
        """Every section of this name: a hostile file may have more than one."""
        return tuple(section for section in self.sections if section.name == name)


def read_image(data: bytes) -> Image:
    """The ELF file in these bytes.

    Raises:
        UnreadableError: there is none, or it is larger than any program of ours.
    """
    if len(data) > MOST_BYTES:
        raise UnreadableError(f"too large (got {len(data)} bytes, expected {MOST_BYTES} at most)")
    try:
        return _image(ELFFile(io.BytesIO(data)), data)
    except UnreadableError:
        raise
    except Exception as error:  # pyelftools raises whatever its parsing trips over
        raise UnreadableError(f"not an ELF file that can be read: {error}") from error


def _image(file: ELFFile, data: bytes) -> Image:
    counts = (file.num_segments(), file.num_sections())
    if max(counts) > MOST_ENTRIES:
        most = f"(got {max(counts)}, expected {MOST_ENTRIES} at most)"
        raise UnreadableError(f"too many segments or sections {most}")
    header = file.header
    return Image(
        bits=file.elfclass,
        little_endian=file.little_endian,
        kind=str(header["e_type"]),
        machine=str(header["e_machine"]),
        entry=header["e_entry"],
        segments=tuple(_segment(file.get_segment(index)) for index in range(counts[0])),
        sections=tuple(_section(file.get_section(index), data) for index in range(counts[1])),
        linking=_linking(file),
    )


def _linking(file: ELFFile) -> Linking | None:
    kinds = ("PT_INTERP", "PT_DYNAMIC")
    found: list[Any] = [each for each in file.iter_segments() if each.header["p_type"] in kinds]
    if not found:
        return None
    with suppress(Exception):  # pyelftools raises whatever its parsing trips over
        dynamic = [each for each in found if each.header["p_type"] == "PT_DYNAMIC"]
        symbols = [symbol for each in dynamic for symbol in _bounded(each.iter_symbols()) if symbol.name]
        return Linking(
            interpreters=tuple(
                each.get_interp_name() for each in found if each.header["p_type"] == "PT_INTERP"
            ),
            needed=tuple(tag.needed for each in dynamic for tag in _bounded(each.iter_tags("DT_NEEDED"))),
            imports=tuple(each.name for each in symbols if each["st_shndx"] == "SHN_UNDEF"),
            exports=tuple(each.name for each in symbols if each["st_shndx"] != "SHN_UNDEF"),
        )
    return Linking()


def _bounded(entries: Iterable[Any]) -> Iterator[Any]:
    for number, entry in enumerate(entries):
        if number == MOST_ENTRIES:
            raise UnreadableError(f"too many entries (got more, expected {MOST_ENTRIES} at most)")
        yield entry


def _segment(segment: object) -> Segment:
    header = segment.header  # type: ignore[attr-defined]  # pyelftools has no types
    letters = ((4, "R"), (2, "W"), (1, "X"))
    flags = "".join(letter for bit, letter in letters if header["p_flags"] & bit)
    return Segment(
        kind=str(header["p_type"]),
        flags=flags,
        offset=header["p_offset"],
        file_size=header["p_filesz"],
        memory_size=header["p_memsz"],
    )


def _section(section: object, data: bytes) -> Section:
    header = section.header  # type: ignore[attr-defined]  # pyelftools has no types
    offset, size, kind = header["sh_offset"], header["sh_size"], str(header["sh_type"])
    name = section.name[:_MOST_OF_A_NAME]  # type: ignore[attr-defined]  # pyelftools has no types
    return Section(name=name, kind=kind, offset=offset, size=size, _file=data)
