"""What others do over SSH, as their manuals say and tuned: `ssh`, asyncssh, pyinfra and ansible-core.

Each way is a command that does one task on every node. Knows their command lines, scripts and settings; must
not know how anything is timed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.sshd import Sshd

PACKAGES = ("asyncssh==2.24.1", "pyinfra==3.10.0", "ansible-core==2.19.14")


@dataclass(frozen=True)
class Task:
    """What is to be done on every node.

    Attributes:
        name: `commands`, `upload` or `connects`.
        nodes: one server may stand for many.
        folder: where it leaves its marks, one for each node.
        source: the file to upload; None where there is none.
        sha256: of that file.
    """

    name: str
    nodes: Sequence[Sshd]
    folder: Path
    source: Path | None = None
    sha256: str = ""

    def mark(self, node: int) -> Path:
        """What the node's part leaves: in a folder of its own, which orch makes and the others find."""
        return self.folder / f"n{node}" / "file"

    def commands(self, node: int) -> list[str]:
        """What is to be run there, in order."""
        if self.source is not None:
            return [f"echo '{self.sha256}  {self.mark(node)}' | sha256sum -c"]
        return [f"echo {k} >>{self.mark(node)}" for k in range(10 if self.name == "commands" else 1)]


@dataclass(frozen=True)
class Way:
    """How a task is done: a command, its environment, and whether it tells by itself how long it took."""

    name: str
    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    tells: bool = False


def ways(task: Task, python: Path | None, scratch: Path) -> tuple[Way, ...]:
    """Every way to do a task; their files go under `scratch`, a folder of its own for each call."""
    scratch.mkdir(parents=True)
    given = scratch / "task.json"
    given.write_text(json.dumps(_plain(task)))
    found = [_script(name, sys.executable, given, str(scratch)) for name in ("ssh", "ssh, tuned")]
    if python is not None:
        found += [_script(name, str(python), given) for name in ("asyncssh", "asyncssh, tuned")]
        found += [
            _pyinfra(task, python.parent, scratch / "p", tuned=False),
            _pyinfra(task, python.parent, scratch / "pt", tuned=True),
            _ansible(task, python.parent, scratch / "a", tuned=False),
            _ansible(task, python.parent, scratch / "at", tuned=True),
        ]
    return tuple(found)


def _script(name: str, python: str, given: Path, *more: str) -> Way:
    peer, _, tuned = name.partition(", ")
    script = Path(__file__).with_name(f"peer_{peer}.py")
    return Way(name, [python, str(script), str(given), tuned or "default", *more], tells=True)


def _plain(task: Task) -> dict[str, object]:
    first = task.nodes[0]
    return {
        "user": first.user,
        "key": str(first.key),
        "known": str(first.known_hosts),
        "source": str(task.source or ""),
        "nodes": [
            {"name": f"n{i}", "port": node.port, "mark": str(task.mark(i)), "commands": task.commands(i)}
            for i, node in enumerate(task.nodes)
        ],
    }


def _pyinfra(task: Task, bin_folder: Path, scratch: Path, *, tuned: bool) -> Way:
    """Tuned: no more than eight nodes at once."""
    scratch.mkdir()
    common = {
        "ssh_user": task.nodes[0].user,
        "ssh_key": str(task.nodes[0].key),
        "ssh_known_hosts_file": str(task.nodes[0].known_hosts),
        "ssh_hostname": "127.0.0.1",
    }
    hosts = [
        (f"n{i}", {**common, "ssh_port": node.port, "commands": task.commands(i), "mark": str(task.mark(i))})
        for i, node in enumerate(task.nodes)
    ]
    (scratch / "inventory.py").write_text(f"nodes = {hosts!r}\n")
    lines = ["from pyinfra import host", "from pyinfra.operations import files, server"]
    if task.source is not None:
        lines.append(f"files.put(src={str(task.source)!r}, dest=host.data.mark)")
    lines += [
        "for number, command in enumerate(host.data.commands):",
        "    server.shell(name=f'command {number}', commands=[command])",
    ]
    (scratch / "deploy.py").write_text("\n".join(lines) + "\n")
    more = ["--parallel", "8"] if tuned else []
    argv = [
        str(bin_folder / "pyinfra"),
        "-y",
        *more,
        str(scratch / "inventory.py"),
        str(scratch / "deploy.py"),
    ]
    return Way("pyinfra, tuned" if tuned else "pyinfra", argv)


def _ansible(task: Task, bin_folder: Path, scratch: Path, *, tuned: bool) -> Way:
    """Tuned: pipelining, a process for each node, no facts gathered, each node at its own pace."""
    scratch.mkdir()
    hosts = {
        f"n{i}": {"ansible_port": node.port, "mark": str(task.mark(i)), "commands": task.commands(i)}
        for i, node in enumerate(task.nodes)
    }
    common = {
        "ansible_host": "127.0.0.1",
        "ansible_python_interpreter": sys.executable,
        "ansible_user": task.nodes[0].user,
        "ansible_ssh_private_key_file": str(task.nodes[0].key),
        "ansible_ssh_common_args": f"-F none -o UserKnownHostsFile={task.nodes[0].known_hosts}",
    }
    (scratch / "ansible.cfg").touch()
    (scratch / "inventory.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": common}}))
    steps: list[dict[str, object]] = []
    if task.source is not None:
        steps.append({"copy": {"src": str(task.source), "dest": "{{ mark }}"}})
    count = len(task.commands(0))
    steps += [{"shell": "{{ commands[" + str(number) + "] }}"} for number in range(count)]
    play: dict[str, object] = {"hosts": "all", "tasks": steps}
    if tuned:
        play |= {"gather_facts": False, "strategy": "free"}
    (scratch / "play.json").write_text(json.dumps([play]))
    settings = {
        "ANSIBLE_HOME": str(scratch / "home"),
        "ANSIBLE_CONFIG": str(scratch / "ansible.cfg"),
        "ANSIBLE_NOCOLOR": "1",
    }
    if tuned:
        forks = "8" if len({node.port for node in task.nodes}) < len(task.nodes) else "48"
        settings |= {"ANSIBLE_PIPELINING": "1", "ANSIBLE_FORKS": forks}
    argv = [
        str(bin_folder / "ansible-playbook"),
        "-i",
        str(scratch / "inventory.json"),
        str(scratch / "play.json"),
    ]
    return Way("ansible, tuned" if tuned else "ansible", argv, settings)
