"""Program and binding to executable, and back.

Knows where the binding section lies in the file; nothing is compiled or linked here.
"""

from __future__ import annotations

from functools import lru_cache

from orchestrator.build.binding import SIZE, Binding
from orchestrator.build.compile import Program
from orchestrator.build.image import Image, UnreadableError, read_image

SECTION = ".orch.binding"


def bind(program: Program, binding: Binding) -> bytes:
    """The executable: the program with this binding in its section.

    Raises:
        BindingError: a value has no place in the layout.
        UnreadableError: the program has no binding section.
    """
    start = _offset(program.data)
    return program.data[:start] + binding.pack() + program.data[start + SIZE :]


@lru_cache(maxsize=64)
def _offset(program: bytes) -> int:
    """Where a program's binding begins; a lane binds each of its few programs many times."""
    return section_offset(read_image(program))


def split(executable: bytes) -> tuple[bytes, Binding | None]:
    """The program's bytes, binding section zeroed, and what was bound; None where the section is zero.

    Raises:
        BindingError: the section holds something else than a whole binding.
        UnreadableError: there is no binding section.
    """
    start = section_offset(read_image(executable))
    bound = executable[start : start + SIZE]
    program = executable[:start] + bytes(SIZE) + executable[start + SIZE :]
    return program, Binding.unpack(bound) if any(bound) else None


def section_offset(image: Image) -> int:
    """Where the binding section's 512 bytes begin in the file.

    Raises:
        UnreadableError: there is not exactly one such section with 512 bytes in the file.
    """
    sections = image.sections_named(SECTION)
    if len(sections) != 1 or len(sections[0].data) != SIZE:
        raise UnreadableError(f"no {SECTION} section of {SIZE} bytes")
    return sections[0].offset
