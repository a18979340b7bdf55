"""What an executable of ours must be, checked from its bytes alone.

Knows the rules; knows no plan but by its digest, and runs nothing. Hostile bytes give problems, no error.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from orchestrator.build.bind import SECTION, section_offset
from orchestrator.build.binding import SIZE, Binding, BindingError
from orchestrator.build.compile import INTERPRETERS, LIBRARY
from orchestrator.build.image import Image, Linking, UnreadableError, read_image

PLAN_SECTION = ".orch.plan"
# the plan's digest and the system's, the role's index and its name, ended and filled up with zeros
_IDENTITY = struct.Struct("<32s32sI")
_FILLED_TO = 4
_NAME = re.compile(rb"[A-Za-z0-9_-][A-Za-z0-9_.-]*")

IMPORTS = ("dlopen", "dlsym")
"""All that a device role takes from the node's library: what loads others."""

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


@dataclass(frozen=True)
class Identity:
    """What a program says that it is of, compiled in.

    Attributes:
        plan: the plan's digest, hex.
        system: the system's digest, hex.
        role_index: the role's place in role order.
        role: the role's name.
    """

    plan: str
    system: str
    role_index: int
    role: str


def verify(
    data: bytes,
    *,
    target: str | None,
    plan: str | None,
    role: str | None = None,
    is_device: bool | None = False,
) -> tuple[ElfProblem, ...]:
    """What is wrong with an executable or program; nothing if it is sound.

    Args:
        data: the file's bytes.
        target: what it must be made for; None takes any that we build for.
        plan: digest, hex, of the plan that it must carry and be bound to; None takes any.
        role: name of the role that it must be; None takes any.
        is_device: whether it must be one that loads a card's driver, and so not static; None takes either.
    """
    try:
        image = read_image(data)
    except UnreadableError as error:
        return (ElfProblem("format", str(error)),)
    identity = _identity(image)
    return (
        *_machine(image, target),
        *_linked(image, is_device=is_device),
        *_memory(image, len(data)),
        *_carried(identity, plan, role),
        *_binding(image, data, plan or (identity.plan if identity else None)),
    )


def describe(data: bytes) -> dict[str, object]:
    """What an executable says of itself, for people and JSON; of bytes that are none, why not."""
    whole = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    try:
        image = read_image(data)
    except UnreadableError as error:
        return {**whole, "problem": str(error)}
    identity = _identity(image)
    targets = (target for target, machine in MACHINES.items() if machine == image.machine)
    return {
        **whole,
        "target": next(targets, None),
        "kind": image.kind,
        "machine": image.machine,
        "linking": image.linking and asdict(image.linking),
        "memory_bytes": memory_bytes(image),
        "plan": identity and identity.plan,
        "system": identity and identity.system,
        "role": identity and identity.role,
        "role_index": identity and identity.role_index,
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


def _linked(image: Image, *, is_device: bool | None) -> Iterator[ElfProblem]:
    if image.kind not in ("ET_EXEC", "ET_DYN"):
        yield ElfProblem("static", f"not an executable (got {image.kind}, expected ET_EXEC)")
    if is_device is True or (is_device is None and image.linking is not None):
        yield from _dynamic(image)
        return
    for segment in image.segments:
        if segment.kind in ("PT_INTERP", "PT_DYNAMIC"):
            yield ElfProblem("static", f"needs a loader: it has a {segment.kind} segment")


def _dynamic(image: Image) -> Iterator[ElfProblem]:
    """The one way in which a device role depends on its node."""
    linking = image.linking or Linking()
    loaders = {MACHINES[target]: path for target, path in INTERPRETERS.items()}
    loader = loaders.get(image.machine)
    for what, got, expected in (
        ("interpreters", linking.interpreters, (loader,)),
        ("libraries", linking.needed, (LIBRARY,)),
        ("imported names", tuple(sorted(linking.imports)), IMPORTS),
        ("exported names", linking.exports, ()),
    ):
        if got != expected:
            said = f"(got {_listed(got)}, expected {_listed(expected)})"
            yield ElfProblem("dynamic", f"it has other {what} {said}")


def _listed(names: Iterable[str | None]) -> str:
    return ", ".join(map(repr, names)) or "none"


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


def _carried(identity: Identity | None, plan: str | None, role: str | None) -> Iterator[ElfProblem]:
    if identity is None:
        yield ElfProblem("plan", f"no whole {PLAN_SECTION} section")
        return
    if plan is not None and identity.plan != plan:
        yield ElfProblem("plan", f"made from another plan (got {identity.plan}, expected {plan})")
    if role is not None and identity.role != role:
        yield ElfProblem("role", f"made for another role (got {identity.role}, expected {role})")


def _identity(image: Image) -> Identity | None:
    sections = image.sections_named(PLAN_SECTION)
    if len(sections) != 1 or len(sections[0].data) <= _IDENTITY.size:
        return None
    head, rest = sections[0].data[: _IDENTITY.size], sections[0].data[_IDENTITY.size :]
    plan, system, role_index = _IDENTITY.unpack(head)
    name = rest.rstrip(b"\0")
    if not _NAME.fullmatch(name) or not 0 < len(rest) - len(name) <= _FILLED_TO:
        return None
    return Identity(plan.hex(), system.hex(), role_index, name.decode("ascii"))


def _binding(image: Image, data: bytes, expected: str | None) -> Iterator[ElfProblem]:
    try:
        binding = _bound(image, data)
    except (UnreadableError, BindingError) as error:
        yield ElfProblem("binding", str(error))
        return
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
