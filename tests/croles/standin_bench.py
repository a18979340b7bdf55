"""A stand-in's driver in this process: a library of its own for each bench, called as a role calls it."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from role_bench import CONTENT

from orchestrator.build import standin
from orchestrator.build.cached import build_all
from orchestrator.build.standin import CALLS, CARDS, LIBCUDA, Calls, Card, calls, cards_text

HOST = f"{os.uname().machine}-linux"

CARD = Card(
    minor=3,
    uuid="GPU-01234567-89ab-cdef-0123-456789abcdef",
    bus="0000:41:00.0",
    cc="8.6",
    memory_mib=64,
    reserved_mib=3,
    driver="550.54.14",
    name="NVIDIA GeForce RTX 3070",
)
OTHER = replace(CARD, minor=0, uuid=CARD.uuid[:-1] + "0", bus="0001:0a:00.0", cc="7.5", name="Tesla T4")

SQUARE = "ld.global.f64 f0,[a1]; mul.rn.f64 f0,f0,f0; st.global.f64 [a1],f0; ret;"
HEAD = ".version 6.3\n.target sm_75\n.address_size 64\n"


def kernel(body: str, name: str = "k", word: str = "f64") -> str:
    """A kernel of one parameter: its thread's number in r0, the address of its own word in a1."""
    return f"""
.visible .entry {name}(.param .u64 A)
{{
.reg .pred p<3>;
.reg .b32 r<5>;
.reg .b64 a<5>;
.reg .{word} f<5>;
mov.u32 r0,%ctaid.x;
mov.u32 r1,%tid.x;
mad.lo.u32 r0,r0,128,r1;
ld.param.u64 a0,[A];
mad.wide.u32 a1,r0,{8 if word == "f64" else 4},a0;
{body}
}}
"""


class Driver:
    """The library in a work folder, which must be the current one."""

    def __init__(self, folder: Path, libcuda: bytes, cards: Sequence[Card]) -> None:
        (folder / "standin").mkdir()
        (folder / "standin" / CARDS).write_text(cards_text(cards))
        (folder / "standin" / LIBCUDA).write_bytes(libcuda)
        self.folder = folder
        self.cuda = ctypes.CDLL(str(folder / "standin" / LIBCUDA))

    def begin(self, bus: str = CARD.bus) -> None:
        """A context on the card there."""
        assert self.cuda.cuInit(0) == 0
        device, context = self.device(bus), ctypes.c_void_p()
        assert self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0
        assert self.cuda.cuCtxSetCurrent(context) == 0

    def device(self, bus: str) -> int:
        number = ctypes.c_int()
        assert self.cuda.cuDeviceGetByPCIBusId(ctypes.byref(number), bus.encode()) == 0
        return number.value

    def load(self, text: str) -> tuple[int, ctypes.c_void_p]:
        module = ctypes.c_void_p()
        return self.cuda.cuModuleLoadData(ctypes.byref(module), text.encode()), module

    def function(self, text: str, name: str = "k") -> ctypes.c_void_p:
        result, module = self.load(text)
        assert result == 0, text
        return self.entry(module, name)

    def entry(self, module: ctypes.c_void_p, name: str) -> ctypes.c_void_p:
        found = ctypes.c_void_p()
        assert self.cuda.cuModuleGetFunction(ctypes.byref(found), module, name.encode()) == 0
        return found

    def allocate(self, size: int) -> tuple[int, int]:
        address = ctypes.c_uint64()
        result = self.cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
        return result, address.value

    def put(self, data: bytes, at: int | None = None) -> int:
        """Its address: of fresh memory where none is given."""
        if at is None:
            result, at = self.allocate(len(data))
            assert result == 0
        assert self.copy_to(at, data) == 0
        return at

    def copy_to(self, at: int, data: bytes) -> int:
        return self.cuda.cuMemcpyHtoD_v2(ctypes.c_uint64(at), data, ctypes.c_size_t(len(data)))

    def copy_from(self, at: int, size: int) -> tuple[int, bytes]:
        into = ctypes.create_string_buffer(size)
        return self.cuda.cuMemcpyDtoH_v2(into, ctypes.c_uint64(at), ctypes.c_size_t(size)), into.raw

    def get(self, at: int, size: int) -> bytes:
        result, data = self.copy_from(at, size)
        assert result == 0
        return data

    def launch(self, function: ctypes.c_void_p, *addresses: int, grid: int = 1, block: int = 1) -> int:
        """What the launch and then the waiting for it say; the first that is an error."""
        values = [ctypes.c_uint64(address) for address in addresses]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        launched = self.cuda.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, None, pointers, None)
        return launched or self.cuda.cuCtxSynchronize()

    def calls(self) -> tuple[Calls, ...]:
        return calls((self.folder / CALLS).read_text())


TRAPS = ("-fsanitize=undefined", "-fsanitize-trap=undefined")
"""What meets undefined behaviour ends the process."""


def sanitized(name: str, cache: Path) -> bytes:
    """One of the stand-in's programs with traps."""
    task = standin._task(CONTENT / "roles", HOST, name)
    (data,) = build_all([replace(task, arguments=(*task.arguments, *TRAPS))], cache)
    return data


def unit(name: str, target: str, cache: Path) -> bytes:
    """A unit under test, with the library's sources in it."""
    task = standin._task(CONTENT / "roles", target, LIBCUDA)
    folder = Path(__file__).parent / "units"
    sources = {**task.sources, f"runtime/{name}.c": (folder / f"{name}.c").read_bytes()}
    sources |= {"runtime/unit.h": (folder / "unit.h").read_bytes()}
    arguments = [each for each in task.arguments if each not in ("-shared", "-fPIC")]
    made = replace(task, arguments=(*arguments, f"runtime/{name}.c", "-static", *TRAPS), sources=sources)
    (data,) = build_all([made], cache)
    return data


def doubles(*values: float) -> bytes:
    return struct.pack(f"<{len(values)}d", *values)
