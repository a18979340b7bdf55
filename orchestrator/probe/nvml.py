"""NVML of this machine, by its Python binding: a second witness beside nvidia-smi, where it is at hand.

The only module that imports `pynvml`, and only when it is asked. A library that is not there is a fact, not
an error. What is rented is asked over its own tools: NVML is not reached through SSH.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from orchestrator.probe import values
from orchestrator.probe.inventory import Card, Process, Reading
from orchestrator.probe.values import Value, broken

SOURCE: Final = "nvml"
_MIB: Final = 1 << 20
_MODES: Final = ("Disabled", "Enabled")


def read_nvml() -> Reading:
    """What NVML says of this machine's cards; without it, a reading whose note says why there is none."""
    try:
        import pynvml
    except ImportError:
        return _without("the Python binding is not installed")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return _without(values.one_line(str(error)))
    try:
        return _Nvml(pynvml).reading()
    finally:
        pynvml.nvmlShutdown()


def _without(why: str) -> Reading:
    return Reading(SOURCE, notes=(f"NVML was not asked: {why}",))


class _Nvml:
    """The library, initialised. Whatever a call answers with becomes a value; no exception leaves."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._unsupported = (
            library.NVML_ERROR_NOT_SUPPORTED,
            library.NVML_ERROR_FUNCTION_NOT_FOUND,
            library.NVML_ERROR_NO_PERMISSION,
            library.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        )

    def reading(self) -> Reading:
        """All cards."""
        count = self._ask(self._library.nvmlDeviceGetCount, int)
        driver = self._text(self._library.nvmlSystemGetDriverVersion, values.driver)
        cards = tuple(self._card(index) for index in range(count.known or 0))
        is_simulated = hasattr(self._library.nvmlLib, "orch_stand_in")
        return Reading(SOURCE, driver=driver, attached=count, cards=cards, is_simulated=is_simulated)

    def _ask(self, call: Callable[..., Any], as_value: Callable[[Any], Any], *arguments: Any) -> Value[Any]:
        try:
            value = as_value(call(*arguments))
        except self._library.NVMLError as error:
            if error.value in self._unsupported:
                return Value("unsupported", None, values.one_line(str(error)))
            return broken(str(error))
        except self._library.NVMLLibraryMismatchError as error:  # of a driver older than the binding
            return Value("unsupported", None, values.one_line(str(error)))
        return Value("known", value, str(value))

    def _text(self, call: Callable[..., Any], as_value: Callable[[str], Any], *arguments: Any) -> Value[Any]:
        said = self._ask(call, str, *arguments)
        return values.read(said.known, as_value) if said.state == "known" else said

    def _card(self, index: int) -> Card:
        library = self._library
        handle = self._ask(library.nvmlDeviceGetHandleByIndex, lambda found: found, index)
        if handle.state != "known":
            return Card(broken(handle.text), index=index, broken=(handle.text,), sources=(SOURCE,))
        card = handle.known
        memory = self._memory(card)
        return Card(
            bus=self._text(lambda it: library.nvmlDeviceGetPciInfo(it).busId, values.bus_id, card),
            index=index,
            minor=self._ask(library.nvmlDeviceGetMinorNumber, int, card),
            uuid=self._text(library.nvmlDeviceGetUUID, values.uuid, card),
            product=self._text(library.nvmlDeviceGetName, values.word, card),
            capability=self._ask(library.nvmlDeviceGetCudaComputeCapability, _dotted, card),
            total_mib=memory("total"),
            reserved_mib=memory("reserved"),
            used_mib=memory("used"),
            utilization=self._ask(library.nvmlDeviceGetUtilizationRates, lambda it: int(it.gpu), card),
            mig=self._ask(library.nvmlDeviceGetMigMode, lambda modes: _MODES[int(modes[0]) & 1], card),
            own_generation=self._ask(library.nvmlDeviceGetGpuMaxPcieLinkGeneration, int, card),
            pcie_width=self._ask(library.nvmlDeviceGetMaxPcieLinkWidth, int, card),
            is_examined=True,
            processes=self._processes(card),
            sources=(SOURCE,),
        )

    def _memory(self, card: Any) -> Callable[[str], Value[int]]:
        """Fields in MiB. Version 1 counts the reserved part as used, so it tells the total only."""
        library = self._library
        whole = self._ask(
            lambda: library.nvmlDeviceGetMemoryInfo(card, version=library.nvmlMemory_v2), lambda it: it
        )
        first = self._ask(library.nvmlDeviceGetMemoryInfo, lambda it: it, card)

        def field(name: str) -> Value[int]:
            source = whole if whole.state == "known" else first
            if source.state != "known" or (source is first and name != "total"):
                return Value(whole.state if whole.state != "known" else "untold", None, whole.text)
            size = int(getattr(source.known, name)) // _MIB
            return Value("known", size, f"{size} MiB")

        return field

    def _processes(self, card: Any) -> tuple[Process, ...] | None:
        """Those that run on a card, by both lists; None if neither is told."""
        library = self._library
        lists = {
            "C": self._ask(library.nvmlDeviceGetComputeRunningProcesses, list, card),
            "G": self._ask(library.nvmlDeviceGetGraphicsRunningProcesses, list, card),
        }
        if lists["C"].state != "known":
            return None
        found: dict[int, tuple[str, Any]] = {}
        for kind, said in lists.items():
            for each in said.known or ():
                before, _ = found.get(each.pid, ("", None))
                found[each.pid] = (f"{before}+{kind}" if before else kind, each.usedGpuMemory)
        return tuple(self._process(pid, kind, used) for pid, (kind, used) in found.items())

    def _process(self, pid: int, kind: str, used: Any) -> Process:
        name = self._ask(self._library.nvmlSystemGetProcessName, str, pid)
        size = Value[int]("unsupported") if used is None else Value("known", int(used) // _MIB)
        return Process(Value("known", pid, str(pid)), kind, values.one_line(name.known or ""), size)


def _dotted(version: Any) -> str:
    major, minor = version
    return f"{int(major)}.{int(minor)}"
