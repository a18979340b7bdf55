"""What an executable of ours must be, checked from its bytes alone.

Knows the rules; knows no plan but by its digest, and runs nothing. Hostile bytes give problems, no error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.build.bind import SECTION, section_offset
from orchestrator.build.binding import SIZE, Binding, BindingError
from orchestrator.build.image import Image, UnreadableError, read_image

PLAN_SECTION = ".orch.plan"
_DIGEST = 32

MACHINES = {"x86_64-linux": "EM_X86_64", "aarch64-linux": "EM_AARCH64"}


@dataclass(frozen=True)
class ElfProblem:
    """One thing that is not as it must be.

    Attributes:
        check: the rule, a short stable name.
        message: one sentence; ends with "(got X, expected Y)" where there is something to compare.
    """

    check: str
    message: str

    def __str__(self) -> str:
        return f"{self.check}: {self.message}"


def verify(data: bytes, *, target: str | None, plan: str | None) -> tuple[ElfProblem, ...]:
    """What is wrong with an executable or program; nothing if it is sound.

    Args:
        data: the file's bytes.
        target: what it must be made for; None takes any that we build for.
        plan: digest, hex, of the plan that it must carry and be bound to; None takes any.
    """
    try:
        image = read_image(data)
    except UnreadableError as error:
        return (ElfProblem("format", str(error)),)
    return (
        *_machine(image, target),
        *_static(image),
        *_memory(image, len(data)),
        *_plan(image, plan),
        *_binding(image, data, plan),
    )


def describe(data: bytes) -> dict[str, object]:
    """What an executable says of itself, for people and JSON; of bytes that are none, why not."""
    whole = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    try:
        image = read_image(data)
    except UnreadableError as error:
        return {**whole, "problem": str(error)}
    targets = (target for target, machine in MACHINES.items() if machine == image.machine)
    return {
        **whole,
        "target": next(targets, None),
        "kind": image.kind,
        "machine": image.machine,
        "memory_bytes": memory_bytes(image),
        "plan": _compiled_in(image, 0),
        "system": _compiled_in(image, 1),
        "segments": [
            {"kind": segment.kind, "flags": segment.flags, "memory_bytes": segment.memory_size}
            for segment in image.segments
        ],
        **_describe_binding(image, data),
    }


def memory_bytes(image: Image) -> int:
    """Bytes that the kernel maps for the file: code, constants and static arrays."""
    return sum(segment.memory_size for segment in image.segments if segment.kind == "PT_LOAD")


def _machine(image: Image, target: str | None) -> Iterator[ElfProblem]:
    expected = tuple(MACHINES.values()) if target is None else (MACHINES.get(target, target),)
    if image.machine not in expected:
        yield ElfProblem(
            "machine", f"made for another machine (got {image.machine}, expected {' or '.join(expected)})"
        )
    if image.bits != 64 or not image.little_endian:  # noqa: PLR2004 - the name of the class
        yield ElfProblem("machine", "not 64-bit and little-endian")


def _static(image: Image) -> Iterator[ElfProblem]:
    if image.kind not in ("ET_EXEC", "ET_DYN"):
        yield ElfProblem("static", f"not an executable (got {image.kind}, expected ET_EXEC)")
    for segment in image.segments:
        if segment.kind in ("PT_INTERP", "PT_DYNAMIC"):
            yield ElfProblem("static", f"needs a loader: it has a {segment.kind} segment")


def _memory(image: Image, size: int) -> Iterator[ElfProblem]:
    if not any(segment.kind == "PT_LOAD" and "X" in segment.flags for segment in image.segments):
        yield ElfProblem("memory", "nothing in it can be executed")
    for segment in image.segments:
        if "W" in segment.flags and "X" in segment.flags:
            yield ElfProblem("memory", f"a {segment.kind} segment is writable and executable")
        if segment.kind == "PT_LOAD" and segment.offset + segment.file_size > size:
            yield ElfProblem("memory", "a PT_LOAD segment ends outside of the file")
    # Without this header the kernel gives some machines an executable stack.
    if not any(segment.kind == "PT_GNU_STACK" for segment in image.segments):
        yield ElfProblem("memory", "it does not say that its stack is not executable")


def _plan(image: Image, plan: str | None) -> Iterator[ElfProblem]:
    found = _compiled_in(image, 0)
    if found is None:
        yield ElfProblem("plan", f"no whole {PLAN_SECTION} section")
    elif plan is not None and found != plan:
        yield ElfProblem("plan", f"made from another plan (got {found}, expected {plan})")


def _compiled_in(image: Image, index: int) -> str | None:
    """The plan's digest (0) or the system's (1)."""
    sections = image.sections_named(PLAN_SECTION)
    if len(sections) != 1 or len(sections[0].data) < 2 * _DIGEST:
        return None
    return sections[0].data[index * _DIGEST : (index + 1) * _DIGEST].hex()


def _binding(image: Image, data: bytes, plan: str | None) -> Iterator[ElfProblem]:
    try:
        binding = _bound(image, data)
    except (UnreadableError, BindingError) as error:
        yield ElfProblem("binding", str(error))
        return
    expected = plan or _compiled_in(image, 0)
    if binding is not None and binding.plan != expected:
        yield ElfProblem("binding", f"bound to another plan (got {binding.plan}, expected {expected})")


def _bound(image: Image, data: bytes) -> Binding | None:
    start = section_offset(image)
    bound = data[start : start + SIZE]
    return Binding.unpack(bound) if any(bound) else None


def _describe_binding(image: Image, data: bytes) -> dict[str, object]:
    try:
        start = section_offset(image)
        binding = _bound(image, data)
    except (UnreadableError, BindingError) as error:
        return {"program_sha256": None, "binding": None, "problem": f"{SECTION}: {error}"}
    program = data[:start] + bytes(SIZE) + data[start + SIZE :]
    return {
        "program_sha256": hashlib.sha256(program).hexdigest(),
        "binding": None if binding is None else binding.as_json(),
    }
