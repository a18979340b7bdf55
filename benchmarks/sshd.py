"""Nodes for benchmarks: sshds of this user's own on 127.0.0.1, stock but for their port, keys and files.

Knows how one is configured, started and ended; must not know what is measured through it.
"""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 30.0
SSHD = Path("/usr/sbin/sshd")


@dataclass(frozen=True)
class Sshd:
    """One server: where it listens, whom it lets in with which key, and its own key."""

    port: int
    user: str
    key: Path
    known_hosts: Path
    fingerprint: str


def missing() -> str:
    """What is not here and is needed; nothing if all is."""
    if not SSHD.exists():
        return f"no {SSHD} (openssh-server)"
    return next(
        (f"no {tool} (openssh-client)" for tool in ("ssh", "ssh-keygen") if not shutil.which(tool)), ""
    )


@contextmanager
def servers(folder: Path, count: int) -> Iterator[tuple[Sshd, ...]]:
    """That many servers, for which one key is good; they are ended afterwards, with all their connections."""
    folder.mkdir(parents=True)
    _key(folder / "key")
    (folder / "authorized_keys").write_text((folder / "key.pub").read_text())
    (folder / "known_hosts").touch()
    if os.geteuid() == 0:  # sshd's own place, which its package makes at boot
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    with ExitStack() as stack:
        yield tuple(stack.enter_context(_server(folder, number)) for number in range(count))


@contextmanager
def _server(folder: Path, number: int) -> Iterator[Sshd]:
    port, host_key = _free_port(), folder / f"host{number}"
    _key(host_key)
    public = host_key.with_suffix(".pub").read_text()
    with (folder / "known_hosts").open("a") as known:
        known.write(f"[127.0.0.1]:{port} {public}")
    config = folder / f"sshd{number}"
    config.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {host_key}\nPidFile none\nStrictModes no\n"
        f"AuthorizedKeysFile {folder}/authorized_keys\nPermitRootLogin yes\nUsePAM no\n"
        "Subsystem sftp internal-sftp\n"
    )
    argv = [str(SSHD), "-D", "-e", "-f", str(config)]
    with config.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        _await(port, process, config.with_suffix(".log"))
        said = subprocess.run(["ssh-keygen", "-lf", host_key], check=True, capture_output=True, text=True)
        yield Sshd(port, getpass.getuser(), folder / "key", folder / "known_hosts", said.stdout.split()[1])
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def _key(path: Path) -> None:
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _await(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    limit = time.monotonic() + PATIENCE_S
    while True:
        with socket.socket() as peer:
            if peer.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None or time.monotonic() > limit:
            raise RuntimeError(f"sshd does not listen: {log.read_text()}")
        time.sleep(0.01)
