"""Program and binding to executable, and back.

Knows where the binding section lies in the file; nothing is compiled or linked here.
"""

from __future__ import annotations

import io

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from orchestrator.build.binding import SIZE, Binding
from orchestrator.build.compile import Program

SECTION = ".orch.binding"


class NoBindingError(ValueError):
    """The bytes are no executable with a binding section."""


def bind(program: Program, binding: Binding) -> bytes:
    """The executable: the program with this binding in its section.

    Raises:
        BindingError: a value has no place in the layout.
        NoBindingError: the program has no binding section.
    """
    start = section_offset(program.data)
    return program.data[:start] + binding.pack() + program.data[start + SIZE :]


def split(executable: bytes) -> tuple[bytes, Binding | None]:
    """The program's bytes, binding section zeroed, and what was bound; None where the section is zero.

    Raises:
        BindingError: the section holds something else than a whole binding.
        NoBindingError: there is no binding section.
    """
    start = section_offset(executable)
    bound = executable[start : start + SIZE]
    program = executable[:start] + bytes(SIZE) + executable[start + SIZE :]
    return program, Binding.unpack(bound) if any(bound) else None


def section_offset(data: bytes) -> int:
    """Where the binding section's 512 bytes begin in the file.

    Raises:
        NoBindingError: there is no such section, or it is not 512 bytes of this file.
    """
    try:
        section = ELFFile(io.BytesIO(data)).get_section_by_name(SECTION)
    except (
        ELFError,
        ValueError,
        UnicodeError,
        OverflowError,
        MemoryError,
        AttributeError,
        TypeError,
    ) as error:
        raise NoBindingError(f"not an ELF file that can be read: {error}") from error
    if section is None or section["sh_type"] != "SHT_PROGBITS" or section["sh_size"] != SIZE:
        raise NoBindingError(f"no {SECTION} section of {SIZE} bytes")
    start = int(section["sh_offset"])
    if start + SIZE > len(data):
        raise NoBindingError(f"the {SECTION} section lies outside the file")
    return start
