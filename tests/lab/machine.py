"""What a node under test is like, and the folders and mounts that make it so.

A node has its own HOME, /tmp, /var/tmp, /dev/shm and /run, all of them plain folders of the test's,
so that whatever is left there shows; the rest of the file system is this machine's.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

HOME = "/root"  # of a node's user, in the mount namespace of the node
OWN = {"/run": "run", HOME: "home", "/var/tmp": "vartmp", "/dev/shm": "shm", "/tmp": "tmp"}
LAB = "/run/lab"
PROGRAMS = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")


@dataclass(frozen=True)
class Machine:
    """A node to be made.

    Attributes:
        server: `openssh` or `dropbear`.
        config: lines for sshd_config, before ours (for dropbear: arguments).
        authorized: what stands before the public key in authorized_keys, such as `command="..."`.
        listen: the address that sshd listens on.
        port: None for any free one.
        host_keys: key types, the first of which `SshNode.host_key` names.
        shell: the login shell; None for bash, or sh where all is busybox.
        busybox: all programs are busybox's.
        without: programs that are not there.
        files: path -> text; a relative path is under HOME, an absolute one replaces a file of this machine.
        disks: path -> options of a small tmpfs that is mounted there, such as `size=2m,noexec`.
    """

    server: str = "openssh"
    config: tuple[str, ...] = ()
    authorized: str = ""
    listen: str = "127.0.0.1"
    port: int | None = None
    host_keys: tuple[str, ...] = ("ed25519",)
    shell: str | None = None
    busybox: bool = False
    without: frozenset[str] = frozenset()
    files: Mapping[str, str] = field(default_factory=dict)
    disks: Mapping[str, str] = field(default_factory=dict)

    @property
    def login_shell(self) -> str:
        return self.shell or ("/bin/sh" if self.busybox else "/bin/bash")


def furnish(machine: Machine, folder: Path) -> None:
    """Makes the folders and files that `mounts` puts in place."""
    for name in OWN.values():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name).chmod(0o700 if name == "home" else 0o1777)
    for part in ("run/sshd", "run/lab", "run/lab/usr", "run/lab/etc"):
        (folder / part).mkdir(mode=0o755, exist_ok=True)
    etc = folder / "run/lab/etc"
    accounts = Path("/etc/passwd").read_text().splitlines()
    others = [line for line in accounts if not line.startswith("root:")]
    (etc / "passwd").write_text("\n".join([f"root:x:0:0:root:/root:{machine.login_shell}", *others]) + "\n")
    (etc / "shadow").write_text("root:*:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n")
    (etc / "shells").write_text(machine.login_shell + "\n")
    for path, text in machine.files.items():
        placed = etc / Path(path).name if path.startswith("/") else folder / "home" / path
        placed.parent.mkdir(parents=True, exist_ok=True)
        placed.write_text(text)
        placed.chmod(0o755)
    if machine.busybox or machine.without:
        _programs(machine, folder)


def _programs(machine: Machine, folder: Path) -> None:
    for place in PROGRAMS:
        target = folder / "run/lab/programs" / place.lstrip("/").replace("/", "-")
        target.mkdir(parents=True)
        for name, program in _offered(machine, place):
            if name not in machine.without:
                (target / name).symlink_to(program)


def _offered(machine: Machine, place: str) -> Iterator[tuple[str, str]]:
    if not machine.busybox:
        for path in Path(place).iterdir():
            yield path.name, f"{LAB}{place}/{path.name}"
    elif place == "/usr/bin":
        listed = subprocess.run(["busybox", "--list"], check=True, capture_output=True, text=True)
        for name in {"busybox", *listed.stdout.split()}:
            yield name, f"{LAB}/usr/bin/busybox"
        yield from ((path.name, f"{LAB}/usr/bin/{path.name}") for path in Path(place).glob("qemu-*-static"))


def mounts(machine: Machine, folder: Path) -> Iterator[tuple[str, ...]]:
    """The commands that put them in place, in order; /tmp last, since the folder itself may lie there."""
    for place in sorted(OWN, key=folder.is_relative_to):
        yield ("mount", "--bind", str(folder / OWN[place]), place)
    yield ("mount", "--rbind", "/usr", f"{LAB}/usr")
    for name in ("passwd", "shadow", "shells"):
        yield ("mount", "--bind", f"{LAB}/etc/{name}", f"/etc/{name}")
    for path in machine.files:
        if path.startswith("/"):
            yield ("mount", "--bind", f"{LAB}/etc/{Path(path).name}", path)
    for path, options in machine.disks.items():
        yield ("mkdir", "-p", path)
        yield ("mount", "-t", "tmpfs", "-o", options, "tmpfs", path)
    if machine.busybox or machine.without:
        for place in PROGRAMS:
            programs = f"{LAB}/programs/{place.lstrip('/').replace('/', '-')}"
            yield ("mount", "--bind", programs, place)
