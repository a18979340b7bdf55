"""The rules for executables, on ELF files made here byte by byte."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_binding import ONE_BINDING

from orchestrator.build.elf import describe, verify

LOAD, DYNAMIC, INTERP, STACK = 1, 2, 3, 0x6474E551
X, W, R = 1, 2, 4
PROGBITS, NOBITS = 1, 8
PLAN = "ab" * 32


def binding(plan: str = PLAN) -> bytes:
    return replace(ONE_BINDING, plan=plan).pack()


def identity(plan: str = PLAN, name: bytes = b"worker\0\0") -> bytes:
    return bytes.fromhex(plan) + b"\xcd" * 32 + struct.pack("<I", 1) + name


@dataclass
class Elf:
    machine: int = 62
    kind: int = 2
    bits: int = 2
    order: int = 1
    segments: list[tuple[int, int, int]] = field(
        default_factory=lambda: [(LOAD, R, 64), (LOAD, R | X, 64), (LOAD, R | W, 0), (STACK, R | W, 0)]
    )
    sections: list[tuple[str, int, bytes]] = field(
        default_factory=lambda: [
            (".orch.binding", PROGBITS, bytes(512)),
            (".orch.plan", PROGBITS, identity()),
        ]
    )

    def pack(self) -> bytes:
        sections = [*self.sections, (".names", 3, b"")]
        names = b"\0" + b"".join(name.encode() + b"\0" for name, _, _ in sections)
        sections[-1] = (".names", 3, names)
        at = 64 + 56 * len(self.segments)
        body, table = b"", bytes(64)
        for name, kind, data in sections:
            name_at = names.index(b"\0" + name.encode() + b"\0") + 1
            table += struct.pack("<IIQQQQIIQQ", name_at, kind, 2, 0, at + len(body), len(data), 0, 0, 1, 0)
            body += b"" if kind == NOBITS else data
        ident = b"\x7fELF" + bytes([self.bits, self.order, 1]) + bytes(9)
        counts = (56, len(self.segments), 64, len(sections) + 1, len(sections))
        head = struct.pack(
            "<HHIQQQIHHHHHH", self.kind, self.machine, 1, 64, 64, at + len(body), 0, 64, *counts
        )
        program = b"".join(
            struct.pack("<IIQQQQQQ", kind, flags, 0, 0, 0, size, size, 4096)
            for kind, flags, size in self.segments
        )
        return ident + head + program + body + table


def checks(elf: Elf | bytes, *, target: str | None = "x86_64-linux", plan: str | None = PLAN) -> list[str]:
    data = elf if isinstance(elf, bytes) else elf.pack()
    problems = verify(data, target=target, plan=plan, role="worker")
    return [problem.check for problem in problems]


def with_section(index: int, *section: object) -> Elf:
    elf = Elf()
    elf.sections[index] = section
    return elf


def with_segment(*segment: int) -> Elf:
    elf = Elf()
    elf.segments.append(segment)
    return elf


def test_a_sound_one_has_no_problem():
    assert checks(Elf()) == []
    assert checks(Elf(), target=None, plan=None) == []
    assert checks(Elf(machine=183), target="aarch64-linux") == []
    assert verify(Elf().pack(), target=None, plan=None) == ()
    assert checks(with_section(0, ".orch.binding", PROGBITS, binding())) == []


UNSOUND = {
    "machine": ["machine", Elf(machine=183)],
    "no machine of ours": ["machine", Elf(machine=243)],
    "object file": ["static", Elf(kind=1)],
    "core": ["static", Elf(kind=4)],
    "interpreter": ["static", with_segment(INTERP, R, 8)],
    "dynamic": ["static", with_segment(DYNAMIC, R, 8)],
    "writable code": ["memory", with_segment(LOAD, R | W | X, 8)],
    "executable stack": ["memory", with_segment(STACK, R | W | X, 0)],
    "stack unsaid": ["memory", Elf(segments=[(LOAD, R | X, 64)])],
    "nothing to run": ["memory", Elf(segments=[(LOAD, R, 64), (STACK, R | W, 0)])],
    "segment beyond the file": ["memory", with_segment(LOAD, R, 1 << 40)],
    "no binding": ["binding", with_section(0, ".other", PROGBITS, bytes(512))],
    "short binding": ["binding", with_section(0, ".orch.binding", PROGBITS, bytes(511))],
    "binding not in the file": ["binding", with_section(0, ".orch.binding", NOBITS, bytes(512))],
    "torn binding": ["binding", with_section(0, ".orch.binding", PROGBITS, binding()[:-1] + b"\0")],
    "binding of another plan": ["binding", with_section(0, ".orch.binding", PROGBITS, binding("ef" * 32))],
    "no plan": ["plan", with_section(1, ".other", PROGBITS, bytes(64))],
    "another plan": ["plan", with_section(1, ".orch.plan", PROGBITS, identity("ef" * 32))],
    "another role": ["role", with_section(1, ".orch.plan", PROGBITS, identity(name=b"worker2\0"))],
    "short plan": ["plan", with_section(1, ".orch.plan", PROGBITS, bytes.fromhex(PLAN))],
    "no role": ["plan", with_section(1, ".orch.plan", PROGBITS, identity(name=b""))],
    "a role without a name": ["plan", with_section(1, ".orch.plan", PROGBITS, identity(name=bytes(4)))],
    "a name without an end": ["plan", with_section(1, ".orch.plan", PROGBITS, identity(name=b"worker"))],
    "more than a name": ["plan", with_section(1, ".orch.plan", PROGBITS, identity(name=b"worker\0\0more\0"))],
    "more than its end": [
        "plan",
        with_section(1, ".orch.plan", PROGBITS, identity(name=b"worker" + bytes(5))),
    ],
    "no letters": ["plan", with_section(1, ".orch.plan", PROGBITS, identity(name=b"\xffworker\0"))],
}


@pytest.mark.parametrize("what", UNSOUND)
def test_each_rule_finds_its_own(what):
    check, elf = UNSOUND[what]
    assert checks(elf) == [check]


def test_two_bindings_are_no_binding():
    elf = Elf()
    elf.sections.append((".orch.binding", PROGBITS, bytes(512)))
    assert checks(elf) == ["binding"]


def test_a_binding_is_compared_with_the_plan_inside_where_none_is_given():
    elf = with_section(0, ".orch.binding", PROGBITS, binding("ef" * 32))
    assert checks(elf, plan=None) == ["binding"]


def test_a_description_says_what_is_bound():
    told = describe(with_section(0, ".orch.binding", PROGBITS, binding()).pack())
    assert (told["target"], told["plan"], told["system"]) == ("x86_64-linux", PLAN, "cd" * 32)
    assert (told["role"], told["role_index"]) == ("worker", 1)
    assert told["binding"]["target"] == 5
    assert told["program_sha256"] == describe(Elf().pack())["sha256"]


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF" + bytes(60), b"#!/bin/sh\n", bytes(10_000)])
def test_what_is_no_elf_file_is_said_to_be_none(data):
    assert checks(data) == ["format"]
    assert "problem" in describe(data)


@given(st.binary(max_size=300), st.integers(0, 64))
def test_hostile_bytes_raise_nothing(data, keep):
    hostile = Elf().pack()[:keep] + data
    verify(hostile, target=None, plan=None)
    describe(hostile)


@given(st.data())
def test_a_changed_file_raises_nothing(data):
    hostile = bytearray(with_section(0, ".orch.binding", PROGBITS, binding()).pack())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(hostile) - 8))
        hostile[at : at + 8] = data.draw(st.binary(min_size=8, max_size=8))
    del hostile[data.draw(st.integers(len(hostile) // 2, len(hostile))) :]
    verify(bytes(hostile), target="x86_64-linux", plan=PLAN)
    describe(bytes(hostile))


@pytest.mark.parametrize(
    ("at", "size"), [(32, 8), (40, 8), (54, 2), (56, 2), (58, 2), (60, 2), (62, 2)], ids=str
)
@pytest.mark.parametrize("byte", [0, 1, 255])
def test_a_header_that_leads_astray_raises_nothing_and_ends(at, size, byte):
    hostile = bytearray(Elf().pack())
    hostile[at : at + size] = bytes([byte]) * size
    assert verify(bytes(hostile), target="x86_64-linux", plan=PLAN)
    describe(bytes(hostile))
