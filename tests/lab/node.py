"""A node under test: a machine of its own behind a real sshd, and what happens to both."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lab.keys import fingerprint, make_key, public
from lab.machine import HOME, LAB, Machine, furnish, mounts
from lab.space import BOUND, SYSTEM_PATH, Space, missing, need_spaces, space, until

SSHD = "/usr/sbin/sshd"
DROPBEAR = "/usr/sbin/dropbear"
SERVERS = ("sshd", "dropbear")


@dataclass
class SshNode:
    """A running node.

    Attributes:
        folder: all that it is made of, on this machine.
        host: the address that its sshd listens on.
        key: the private key that it lets in.
        host_key: fingerprint of its first host key.
        space: its namespaces; None where there are none (not root): only the sshd is the test's then.
    """

    machine: Machine
    folder: Path
    host: str
    port: int
    key: Path
    host_key: str
    space: Space | None
    user: str = field(default_factory=getpass.getuser)
    server: subprocess.Popen[bytes] | None = None

    @property
    def home(self) -> Path:
        """HOME of the user on it, as seen from here."""
        return self.folder / "home" if self.space else Path.home()

    def pods_entry(self, **more: Any) -> dict[str, Any]:
        """The node's lines in a pods file; `more` adds to them or replaces them; None takes one away."""
        entry: dict[str, Any] = {
            "host": f"{self.user}@{self.host}",
            "port": self.port,
            "key": str(self.key),
            "host_key": self.host_key,
            "remote_root": ".orch" if self.space else str(self.folder / "orch"),
            "owned": True,
        }
        entry.update(more)
        return {name: value for name, value in entry.items() if value is not None}

    def seen(self, path: Path | str) -> Path:
        """A path on the node, as seen from here, whatever is mounted there."""
        return self.space.seen(path) if self.space else Path(path)

    def processes(self) -> Mapping[int, str]:
        """What runs on the node, but for its sshd: pid, seen from here, and command line."""
        found = {}
        for pid in self._pids():
            with contextlib.suppress(OSError):
                process = Path(f"/proc/{pid}")
                name = (process / "comm").read_text().strip()
                command = (process / "cmdline").read_bytes()
                if command and not name.startswith(SERVERS):
                    found[pid] = command.replace(b"\0", b" ").decode(errors="replace").strip()
        return found

    def left(self) -> tuple[str, ...]:
        """Files on the node that were not there when it was made, as the node names them; sorted."""
        assert self.space, "without namespaces nobody can tell"
        own = [f"{HOME}/{path}" for path in self.machine.files if not path.startswith("/")]
        given = {Path(path) for path in (*own, f"{HOME}/.ssh/authorized_keys", *self.machine.disks)}
        given |= {above for path in given for above in path.parents}
        top = self.seen("/")
        found = []
        for place in (HOME, "/tmp", "/var/tmp", "/dev/shm", *self.machine.disks):
            found += [Path("/") / path.relative_to(top) for path in self.seen(place).rglob("*")]
        return tuple(sorted({str(path) for path in found if path not in given}))

    def fill(self, disk: str) -> Path:
        """Leaves no room on one of its disks; gives the file, as seen from here, that takes it."""
        full = self.seen(disk) / "full"
        with full.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        return full

    def start_sshd(self) -> None:
        """Starts its sshd on the same port; returns when it listens."""
        assert self.server is None
        argv = self._argv()
        with (self.folder / "server.log").open("ab") as log:
            self.server = subprocess.Popen(
                self.space.inside(*argv) if self.space else [*BOUND, *argv],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={"PATH": SYSTEM_PATH},
                cwd="/",
                start_new_session=True,
            )
        until(lambda: self._listens() or self.server.poll() is not None, "sshd listens")
        assert self._listens(), self.log()

    def kill_sshd(self, *, sessions: bool = True) -> None:
        """KILL to its sshd: the listener, and all that serve a connection unless `sessions` is false."""
        for pid in self._pids():
            with contextlib.suppress(OSError):
                process = Path(f"/proc/{pid}")
                title = (process / "cmdline").read_bytes()
                listens = b"[listener]" in title or self.machine.server == "dropbear"
                if (process / "comm").read_text().startswith(SERVERS) and (sessions or listens):
                    os.kill(pid, signal.SIGKILL)
        self._gone()

    def kill_all(self) -> None:
        """KILL to every process on the node, its sshd among them."""
        assert self.space
        for pid in self._pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._gone()

    def log(self) -> str:
        """What its sshd said."""
        return "".join(
            path.read_text(errors="replace")
            for path in (self.folder / "server.log", self.folder / "run/lab/sshd.log")
            if path.exists()
        )

    def _gone(self) -> None:
        if self.server is not None:
            self.server.kill()
            self.server.wait()
            self.server = None
        until(lambda: not self._listens(), "sshd is gone")

    def _pids(self) -> Sequence[int]:
        if self.space:
            return self.space.pids()
        return _descendants(self.server.pid) if self.server else ()

    def _listens(self) -> bool:
        seen_by = self.space.init if self.space else os.getpid()
        port = f":{self.port:04X}"
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/{seen_by}/net/{table}").read_text().splitlines()[1:]:
                _, local, _, state, *_ = line.split()
                if local.endswith(port) and state == "0A":
                    return True
        return False

    def _argv(self) -> tuple[str, ...]:
        lab = LAB if self.space else str(self.folder / "run/lab")
        usr = f"{LAB}/usr" if self.space else "/usr"
        if self.machine.server == "dropbear":
            address = f"[{self.host}]" if ":" in self.host else self.host
            keys = [part for kind in self.machine.host_keys for part in ("-r", f"{lab}/dropbear_{kind}")]
            return (
                usr + "/sbin/dropbear",
                "-F",
                "-E",
                *keys,
                "-p",
                f"{address}:{self.port}",
                *self.machine.config,
            )
        return (f"{usr}/sbin/sshd", "-D", "-f", f"{lab}/sshd_config", "-E", f"{lab}/sshd.log")


def _descendants(pid: int) -> tuple[int, ...]:
    found = [pid]
    for known in found:
        with contextlib.suppress(OSError):
            found.extend(
                int(child) for child in Path(f"/proc/{known}/task/{known}/children").read_text().split()
            )
    return tuple(found)


def free_port(address: str) -> int:
    """A port that nobody uses now."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as taken:
        taken.bind((address, 0))
        return int(taken.getsockname()[1])


def _configure(machine: Machine, folder: Path, port: int, *, spaced: bool) -> None:
    """Writes host keys, authorized_keys and the server's configuration."""
    lab = folder / "run/lab"
    named = LAB if spaced else str(lab)
    for kind in machine.host_keys:
        key = make_key(lab / f"host_{kind}", kind=kind)
        if machine.server == "dropbear":
            convert = ["dropbearconvert", "openssh", "dropbear", str(key), str(lab / f"dropbear_{kind}")]
            subprocess.run(convert, check=True, capture_output=True)
    make_key(folder / "id", comment="the tests' own")
    line = f"{machine.authorized} {public(folder / 'id')}".lstrip()
    ssh = folder / "home/.ssh"
    ssh.mkdir(mode=0o700, exist_ok=True)
    (ssh / "authorized_keys").write_text(line)
    (ssh / "authorized_keys").chmod(0o600)
    lines = [
        *machine.config,
        f"Port {port}",
        f"ListenAddress {machine.listen}",
        *(f"HostKey {named}/host_{kind}" for kind in machine.host_keys),
        f"AuthorizedKeysFile {f'{HOME}/.ssh/authorized_keys' if spaced else ssh / 'authorized_keys'}",
        f"PidFile {named}/sshd.pid",
        "PermitRootLogin yes",
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "StrictModes no",
        "UsePAM no",
        "LogLevel VERBOSE",
    ]
    if not any(line.startswith("Subsystem ") for line in machine.config):
        lines.append("Subsystem sftp /usr/lib/openssh/sftp-server")
    (lab / "sshd_config").write_text("\n".join(lines) + "\n")


def _needs(machine: Machine) -> None:
    server = DROPBEAR if machine.server == "dropbear" else SSHD
    if not Path(server).exists():
        pytest.skip(f"{server} is not installed")
    plain = Machine(
        config=machine.config, listen=machine.listen, port=machine.port, host_keys=machine.host_keys
    )
    if machine != plain:
        need_spaces()
    if machine.shell and not Path(machine.shell).exists():
        pytest.skip(f"{machine.shell} is not installed")
    if machine.busybox and shutil.which("busybox") is None:
        pytest.skip("busybox is not installed")


@contextmanager
def sshd(folder: Path, *, network: bool = False, start: bool = True, **wants: Any) -> Iterator[SshNode]:
    """Makes a node as `Machine(**wants)` describes; all of it is ended afterwards.

    Args:
        folder: an empty or absent folder of the test's, for this node alone.
        network: it gets a network of its own (see `lab.network`), which whoever asks for it has to set up.
        start: its sshd is started.
        wants: see `Machine`.
    """
    machine = Machine(**wants)
    _needs(machine)
    spaced = network or not missing()
    folder.mkdir(parents=True, exist_ok=True)
    furnish(machine, folder)
    if not spaced and os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd's own place, which its package makes at boot
    port = machine.port or (22 if network else free_port(machine.listen))
    _configure(machine, folder, port, spaced=spaced)
    with ExitStack() as stack:
        place = (
            stack.enter_context(space(tuple(mounts(machine, folder)), network=network)) if spaced else None
        )
        host_key = fingerprint(folder / "run/lab" / f"host_{machine.host_keys[0]}")
        node = SshNode(machine, folder, machine.listen, port, folder / "id", host_key, place)
        stack.callback(_end, node)
        if start:
            node.start_sshd()
        yield node


def _end(node: SshNode) -> None:
    if node.server is not None:
        node.kill_sshd()
