"""The stand-in's nvidia-smi, NVML and /proc, asked as a machine is and read as its answers are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import pytest
from elftools.elf.elffile import ELFFile
from role_bench import CONTENT
from standin_bench import CARD, HOST, OTHER, sanitized

from orchestrator.build.standin import (
    CARDS,
    LIBNVIDIA_ML,
    NVIDIA_SMI,
    Card,
    StandIn,
    build_standin,
    calls,
    cards_text,
    proc_tree,
)
from orchestrator.probe import Wanted, checks, commands, read
from orchestrator.probe.reading import STANDIN

WANTED = Wanted(product=CARD.name, capability=CARD.cc, uuid=CARD.uuid, minor=CARD.minor, drivers=("550.54",))


@dataclass(frozen=True)
class Said:
    exit: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True)
class Desk:
    """A stand-in's folder."""

    folder: Path

    def ask(self, *argv: str, folder: Path | None = None) -> Said:
        done = subprocess.run(argv, cwd=folder or self.folder, capture_output=True, check=False)
        return Said(done.returncode, done.stdout, done.stderr)

    def smi(self, *arguments: str) -> Said:
        return self.ask(f"./{NVIDIA_SMI}", *arguments)


@pytest.fixture(params=["as-shipped", "sanitized"])
def desk(
    request: pytest.FixtureRequest, standin: StandIn, program_cache: Path, tmp_path: Path
) -> Callable[..., Desk]:
    is_shipped = request.param == "as-shipped"
    nvidia_smi = standin.nvidia_smi if is_shipped else sanitized(NVIDIA_SMI, program_cache)

    def made(cards: Sequence[Card] = (OTHER, CARD)) -> Desk:
        (tmp_path / CARDS).write_text(cards_text(cards))
        (tmp_path / NVIDIA_SMI).write_bytes(nvidia_smi)
        (tmp_path / NVIDIA_SMI).chmod(0o755)
        for name, data in proc_tree(cards).items():
            path = tmp_path / "proc" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return Desk(tmp_path)

    return made


def probed(desk: Desk):
    questions = commands(PurePosixPath(str(desk.folder)))
    return read({each.name: desk.ask(*each.argv, folder=Path("/")) for each in questions})


def test_a_probe_finds_the_cards(desk: Callable[..., Desk]) -> None:
    inventory = probed(desk())
    assert inventory.faults == ()
    assert inventory.is_simulated
    assert inventory.driver.known == CARD.driver
    for said, card in zip(inventory.cards, (OTHER, CARD), strict=True):
        assert said.minor.known == card.minor
        assert said.uuid.known == card.uuid
        assert said.product.known == card.name
        assert said.capability.known == card.cc
        assert (said.total_mib.known, said.reserved_mib.known) == (card.memory_mib, card.reserved_mib)
        assert said.processes == ()
        assert "proc" in said.sources
    rows = checks(inventory, WANTED)
    assert {row.verdict for row in rows} == {"pass"}, rows


@pytest.mark.parametrize(
    ("changes", "failing"),
    [
        ({"process": (4242, 30), "used_mib": 30}, {"compute-processes"}),
        ({"used_mib": 60}, {"memory-in-use"}),
        ({"utilization": 90}, {"utilisation"}),
        ({"mig": True}, {"mig-off"}),
        ({"reset": True}, {"no-reset-pending"}),
        ({"name": "NVIDIA GeForce RTX 3090"}, {"product"}),
        ({"minor": OTHER.minor}, {"minor"}),
        ({"uuid": OTHER.uuid}, {"uuids-differ", "uuid"}),
    ],
)
def test_a_probe_sees_what_is_wrong(
    desk: Callable[..., Desk], changes: dict[str, object], failing: set[str]
) -> None:
    rows = checks(probed(desk((OTHER, replace(CARD, **changes)))), WANTED)
    assert {row.name for row in rows if row.verdict == "fail"} == failing


def test_the_log_says_what_the_document_says(desk: Callable[..., Desk]) -> None:
    made = desk((OTHER, replace(CARD, process=(4242, 30), used_mib=40, mig=True, reset=True)))
    document, log = (read({kind: made.smi(*how)}) for kind, how in (("xml", ("-q", "-x")), ("text", ("-q",))))
    assert [replace(card, sources=()) for card in log.cards] == [
        replace(card, sources=()) for card in document.cards
    ]
    assert log.faults == document.faults == ()


def test_queries(desk: Callable[..., Desk]) -> None:
    made = desk((OTHER, replace(CARD, process=(4242, 30), used_mib=40)))
    asked = "index,uuid,memory.used,mig.mode.current"
    assert made.smi(f"--query-gpu={asked}", "--format=csv").stdout.decode().splitlines() == [
        "index, uuid, memory.used [MiB], mig.mode.current",
        f"0, {OTHER.uuid}, 0 MiB, [N/A]",
        f"1, {CARD.uuid}, 40 MiB, [N/A]",
    ]
    said = made.smi("--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
    assert (said.exit, said.stdout) == (0, b"4242, 30\n")
    assert made.smi("-L").stdout.decode().splitlines()[1] == f"GPU 1: {CARD.name} (UUID: {CARD.uuid})"
    plain = made.smi()
    assert (plain.exit, CARD.name.encode() in plain.stdout) == (0, True)


@pytest.mark.parametrize("how", [("-q", "-x"), ("-q",), ("-L",), ("--query-gpu=index", "--format=csv"), ()])
def test_every_answer_says_that_it_is_simulated(desk: Callable[..., Desk], how: tuple[str, ...]) -> None:
    said = desk().smi(*how)
    assert STANDIN.encode() in said.stderr
    assert STANDIN.encode() in said.stdout or how[:1] in (("-L",), ("--query-gpu=index",))


@pytest.mark.parametrize(
    "how",
    [
        ("-z",),
        ("-q", "-L"),
        ("-x",),
        ("--query-gpu=index",),
        ("--query-gpu=nothing", "--format=csv"),
        ("--query-gpu=", "--format=csv"),
        ("--query-gpu=index", "--format=xml"),
        ("--query-gpu=index", "--format=csv,bold"),
    ],
)
def test_no_other_question_is_answered(desk: Callable[..., Desk], how: tuple[str, ...]) -> None:
    assert desk().smi(*how).exit == 2


def test_a_machine_without_cards_or_without_a_driver(desk: Callable[..., Desk]) -> None:
    made = desk(())
    for is_there, code, label in ((True, 6, "device-absent"), (False, 9, "device-inventory")):
        if not is_there:
            (made.folder / CARDS).unlink()
        said = made.smi("-q", "-x")
        assert said.exit == code
        assert [str(fault.label) for fault in read({"xml": said}).faults] == [label]
    assert proc_tree(()) == {}


NVML = (
    "import json; from dataclasses import asdict; from orchestrator.probe.nvml import read_nvml; "
    "print(json.dumps(asdict(read_nvml())))"
)


def test_nvml_tells_the_same(standin: StandIn, tmp_path: Path) -> None:
    pytest.importorskip("pynvml")
    cards = (OTHER, replace(CARD, used_mib=5, utilization=7, process=(4242, 5)))
    (tmp_path / "standin").mkdir()
    (tmp_path / "standin" / CARDS).write_text(cards_text(cards))
    (tmp_path / "standin" / LIBNVIDIA_ML).write_bytes(standin.libnvidia_ml)
    environment = {"LD_LIBRARY_PATH": str(tmp_path / "standin"), "PYTHONPATH": str(CONTENT)}
    done = subprocess.run(
        [sys.executable, "-c", NVML],
        cwd=tmp_path,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said["is_simulated"]
    assert said["driver"]["known"] == CARD.driver
    names = ("minor", "uuid", "product", "capability", "bus", "total_mib", "reserved_mib", "used_mib")
    assert [[card[name]["known"] for name in (*names, "utilization")] for card in said["cards"]] == [
        [OTHER.minor, OTHER.uuid, OTHER.name, OTHER.cc, "00000001:0A:00.0", 64, 3, 0, 0],
        [CARD.minor, CARD.uuid, CARD.name, CARD.cc, "00000000:41:00.0", 64, 3, 5, 7],
    ]
    assert [[each["pid"]["known"] for each in card["processes"]] for card in said["cards"]] == [[], [4242]]


def exported(data: bytes, tmp_path: Path) -> set[str]:
    path = tmp_path / "library"
    path.write_bytes(data)
    with path.open("rb") as file:
        elf = ELFFile(file)
        dynamic = elf.get_section_by_name(".dynamic")
        assert not [tag for tag in dynamic.iter_tags() if tag.entry.d_tag == "DT_NEEDED"]
        symbols = elf.get_section_by_name(".dynsym").iter_symbols()
        return {each.name for each in symbols if each.name}


@pytest.mark.parametrize("target", [HOST, "aarch64-linux"])
def test_libraries_need_nothing_and_have_what_roles_call(
    target: str, program_cache: Path, tmp_path: Path
) -> None:
    made = build_standin(CONTENT, program_cache, target)
    runtime = CONTENT / "roles" / "runtime"
    for data, source, name in (
        (made.libcuda, "cuda.h", r'"(cu[A-Z]\w+)"'),
        (made.libnvidia_ml, "inventory.c", r'"(nvml[A-Z]\w+)"'),
    ):
        names = exported(data, tmp_path)
        assert "orch_stand_in" in names
        called = set(re.findall(name, (runtime / source).read_text()))
        assert called
        assert called <= names


def test_counts_have_one_form() -> None:
    with pytest.raises(ValueError, match="no counts of a stand-in"):
        calls("minor=3 calls=1\n")
    assert calls("") == ()
