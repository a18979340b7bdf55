"""Real role programs on the loopback interface: built, bound, started, and what became of them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from role_plans import Case

from orchestrator.build.bind import bind
from orchestrator.build.binding import NOWHERE, Binding
from orchestrator.build.compile import Made, build_program
from orchestrator.plan.model import Role
from orchestrator.spec.device import DeviceSpec

CONTENT = Path(__file__).resolve().parents[2]
X86, ARM = "x86_64-linux", "aarch64-linux"
SECRET = "5e" * 16
EMULATORS = {X86: (), ARM: ("qemu-aarch64-static",)}


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def label(self) -> str:
        """The label of a proper refusal; anything else is shown whole."""
        proper = self.code == 1 and self.out == "" and self.err.endswith("\n") and self.err.count("\n") == 1
        return self.err.removesuffix("\n") if proper else repr(self)

    @property
    def results(self) -> dict:
        assert (self.code, self.err) == (0, ""), self
        assert self.out.count("\n") == 1, self
        return json.loads(self.out)


@dataclass(frozen=True)
class Setup:
    """How a run is deployed. Overrides of the binding go by role, `None` for every role."""

    target: int = 3
    publish_at: int = 0
    mode: str = "train"
    epoch: int = 1
    restore: Path | None = None
    restore_sha256: str | None = None
    targets: Mapping[str, str] = field(default_factory=dict)
    devices: Mapping[str, DeviceSpec] = field(default_factory=dict)
    content: Mapping[str, Path] = field(default_factory=dict)
    cases: Mapping[str, Case] = field(default_factory=dict)
    bind: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    connect_ms: int = 8000
    round_ms: int = 8000
    run_ms: int = 60000
    address: str = "127.0.0.1"


class Bench:
    """One run's folders and processes; leaves no process behind."""

    def __init__(self, folder: Path, cache: Path, case: Case) -> None:
        self.folder, self.cache, self.case = folder, cache, case
        self.run_id = str(uuid.UUID(int=0x0192_0000_0000_7000_8000_0000_0000_0000 + id(self)))
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.setup = Setup()
        self.ports: dict[int, int] = {}

    @property
    def port(self) -> int:
        """Where the root listens."""
        return self.ports[0]

    def work(self, role: str) -> Path:
        return self.folder / role

    def place(self, setup: Setup) -> None:
        """Writes every role's work folder and executable."""
        self.setup = setup
        self._choose_ports()
        for role in self.case.plan.roles:
            self._place(role, setup)

    def again(self, **setup: object) -> None:
        """The same programs, bound to other ports, where the last start left its files."""
        self.setup = replace(self.setup, **setup)
        self.close()
        self.processes.clear()
        self._choose_ports()
        for role in self.case.plan.roles:
            self._bind(role, self.setup)

    def _place(self, role: Role, setup: Setup) -> None:
        work = self.work(role.name)
        work.mkdir(parents=True)
        case = setup.cases.get(role.name, self.case)
        (work / "samples").write_bytes(case.samples(case.plan.roles[role.index]))
        if setup.restore is not None:
            shutil.copytree(setup.restore, work / "restore")
        self._bind(role, setup)

    def _bind(self, role: Role, setup: Setup) -> None:
        work = self.work(role.name)
        case = setup.cases.get(role.name, self.case)
        own = case.plan.roles[role.index]
        samples = case.samples(own)
        target = setup.targets.get(role.name, X86)
        content = setup.content.get(role.name, CONTENT)
        program = build_program(
            case.plan, own, Made(target, setup.devices.get(role.name)), content, self.cache
        )
        binding = Binding(
            plan=case.plan.digest,
            run_id=self.run_id,
            epoch=setup.epoch,
            mode=setup.mode,
            resume=setup.restore is not None,
            restore_sha256=setup.restore_sha256,
            target=setup.target,
            publish_at=setup.publish_at,
            data_sha256=hashlib.sha256(samples).hexdigest(),
            **self._endpoints(role, setup),
            connect_ms=setup.connect_ms,
            round_ms=setup.round_ms,
            run_ms=setup.run_ms,
            secret=SECRET,
        )
        binding = replace(binding, **{**setup.bind.get("*", {}), **setup.bind.get(role.name, {})})
        path = work / "role.elf"
        path.write_bytes(bind(program, binding))
        path.chmod(0o755)

    def _choose_ports(self) -> None:
        tree = self.case.plan.topology
        listening = [role.index for role in self.case.plan.roles if tree.children(role.index)]
        ports = free_ports(self.setup.address, len(listening))
        self.ports = dict(zip(listening, ports, strict=True))

    def _endpoints(self, role: Role, setup: Setup) -> dict[str, Any]:
        """Who has children listens, and who has a parent dials it."""
        parent = self.case.plan.topology.parent(role.index)
        made: dict[str, Any] = {"address": NOWHERE, "port": 0}
        if role.index in self.ports:
            made |= {"address": setup.address, "port": self.ports[role.index]}
        if parent is not None:
            made |= {"parent_address": setup.address, "parent_port": self.ports[parent]}
        return made

    def start(
        self, *names: str, popen: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen, **options: object
    ) -> None:
        for role in self.case.plan.roles:
            if not names or role.name in names:
                target = self.setup.targets.get(role.name, X86)
                command = [
                    *EMULATORS[target],
                    str(self.work(role.name) / "role.elf"),
                    str(self.work(role.name)),
                ]
                self.processes[role.name] = popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    **options,
                )

    def end(self, name: str) -> Outcome:
        out, err = self.processes[name].communicate(timeout=60)
        return Outcome(self.processes[name].returncode, out.decode(), err.decode())

    def ends(self) -> dict[str, Outcome]:
        return {name: self.end(name) for name in self.processes}

    def labels(self) -> dict[str, str]:
        return {name: outcome.label for name, outcome in self.ends().items()}

    def run(self, setup: Setup) -> dict[str, Outcome]:
        self.place(setup)
        self.start()
        return self.ends()

    def wait_for(self, role: str, name: str, *, size: int = 0) -> Path:
        """Until a file of a role has more than `size - 1` bytes."""
        path = self.work(role) / name
        for _ in range(3000):
            if path.exists() and path.stat().st_size >= size:
                return path
            if self.processes[role].poll() is not None:
                break
            time.sleep(0.01)
        raise AssertionError(f"{path} did not come")

    def published(self, version: int, into: Path) -> Path:
        """The complete set of one checkpoint, as a controller would place it for a resume."""
        into.mkdir(parents=True)
        for role in self.case.plan.roles:
            for path in (self.work(role.name) / "checkpoint").glob(f"{version}.*"):
                assert not path.name.endswith(".tmp")
                name = "manifest.json" if path.name == f"{version}.manifest.json" else path.name
                shutil.copy(path, into / name)
        return into

    def committed(self) -> list[str]:
        """Names of all files that publications left, of any role."""
        return sorted(path.name for path in self.folder.glob("*/checkpoint/*"))

    def progress(self, role: str) -> list[str]:
        path = self.work(role) / "progress"
        return path.read_text().splitlines() if path.exists() else []

    def close(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()


def free_ports(address: str, count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        servers = [
            stack.enter_context(socket.create_server((address, 0), family=family(address)))
            for _ in range(count)
        ]
        return [server.getsockname()[1] for server in servers]


def family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def altered_content(folder: Path, file: str, before: str, after: str) -> Path:
    """A copy of the role sources with one piece of text changed in one file."""
    shutil.copytree(CONTENT / "roles", folder / "roles")
    path = folder / "roles" / file
    text = path.read_text()
    assert text.count(before) == 1, f"{file} holds {before!r} {text.count(before)} times"
    path.write_text(text.replace(before, after))
    return folder


def differing(folder: Path) -> Path:
    """A program of the same plan that computes something else."""
    return altered_content(folder, "native/learner.c", "total[i] /= total[TOTAL_MASS]", "total[i] /= 2.0")


def each_role(names: Sequence[str], label: str) -> dict[str, str]:
    return dict.fromkeys(names, label)


def benches(folder: Path, cache: Path) -> Iterator[object]:
    """Makes benches, each in its own folder, and ends them all."""
    made: list[Bench] = []

    def make(case: Case) -> Bench:
        made.append(Bench(folder / f"run{len(made)}", cache, case))
        return made[-1]

    yield make
    for bench in made:
        bench.close()
