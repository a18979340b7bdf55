"""Where a person would sit: a folder in which `orch` runs, with no terminal and nothing on stdin."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.machine import HOME
from lab.node import SshNode
from lab.space import BOUND, missing, until

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 300
# whatever would ask a person leaves a mark instead
ASKED = "asked"
KEPT = ("PATH", "LANG", "TERM")


@dataclass(frozen=True)
class Desk:
    """A working folder with a HOME of its own; only the compiler's cache is shared.

    Attributes:
        environment: what the controller gets besides.
    """

    folder: Path
    cache: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts `orch`: a session of its own, no terminal, stdin closed; it ends with the tests."""
        home, temporary = self.folder / "home", self.folder / "tmp"
        for place in (home, temporary):
            place.mkdir(parents=True, exist_ok=True)
        ask = self.folder / "ask"
        ask.write_text(f"#!/bin/sh\necho \"$@\" >>'{self.folder / ASKED}'\n")
        ask.chmod(0o755)
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment |= {
            "HOME": str(home),
            "TMPDIR": str(temporary),
            "XDG_CACHE_HOME": str(self.cache),
            "PYTHONPATH": str(ROOT),
            "SSH_ASKPASS": str(ask),
            "SSH_ASKPASS_REQUIRE": "force",
            "DISPLAY": ":0",
        }
        return subprocess.Popen(
            [*self._at_home(home), sys.executable, "-m", "orchestrator", *arguments],
            cwd=self.folder,
            env={**environment, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _at_home(self, home: Path) -> tuple[str, ...]:
        """What makes `home` the user's own for ssh too, which asks the accounts' file and not HOME."""
        bound = BOUND if shutil.which(BOUND[0]) else ()
        if missing():
            return bound
        accounts = Path("/etc/passwd").read_text().splitlines()
        others = [line for line in accounts if not line.startswith("root:")]
        mine = self.folder / "passwd"
        mine.write_text("\n".join([f"root:x:0:0:root:{home}:/bin/sh", *others]) + "\n")
        script = 'mount --bind "$0" /etc/passwd && exec "$@"'
        return (*bound, "unshare", "--mount", "--propagation", "private", "sh", "-c", script, str(mine))

    def orch(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs `orch` to its end; nothing asked anybody."""
        return self.end(self.start(*arguments))

    def end(self, process: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
        """Waits for the end of what `start` started."""
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGABRT)
            out, err = process.communicate()
            raise AssertionError(f"it never ended\n{out[-4000:]}\n{err[-4000:]}") from None
        assert not (self.folder / ASKED).exists(), (self.folder / ASKED).read_text()
        assert "Traceback" not in err, err
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def kill(self, process: subprocess.Popen[str]) -> None:
        """KILL to the controller and all that it started here."""
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def run(self, lane: str, pods: Path | None, *more: str) -> tuple[int, dict[str, Any], str]:
        """`orch run`: exit code, the object on stdout (empty if none), stderr."""
        where = ("--pods", str(pods)) if pods else ()
        done = self.orch("run", *((lane,) if lane else ()), *where, "--json", *more)
        return done.returncode, json.loads(done.stdout or "{}"), done.stderr

    def lane(self, name: str, **lines: str) -> str:
        """A shipped lane with some of its lines replaced, beside a copy of all content."""
        for part in ("specs", "roles", "lanes"):
            if not (self.folder / part).exists():
                shutil.copytree(ROOT / part, self.folder / part)
        kept = [
            line
            for line in (ROOT / "lanes" / f"{name}.yaml").read_text().splitlines()
            if line.partition(":")[0] not in lines
        ]
        changed = [f"{key}: {value}" for key, value in lines.items()]
        path = self.folder / "lanes" / f"{name}-{len(list((self.folder / 'lanes').iterdir()))}.yaml"
        path.write_text("\n".join([*kept, *changed]) + "\n")
        return str(path.relative_to(self.folder))

    def bundles(self) -> list[Path]:
        """Bundles begun here."""
        return sorted(
            path.parent for path in self.folder.glob("runs/*/stream.jsonl") if path.parent.name[0] != "."
        )


def events(bundle: Path) -> list[dict[str, Any]]:
    """The whole lines of a bundle's stream."""
    lines = (bundle / "stream.jsonl").read_bytes().split(b"\n")[:-1]
    return [json.loads(line) for line in lines]


def types(bundle: Path) -> list[str]:
    """Kinds of its events, in order, without their common prefix."""
    return [event["type"].removeprefix("orch.") for event in events(bundle)]


def assert_clean(*nodes: SshNode, kept: Sequence[str] = ()) -> None:
    """Nothing of ours runs on the nodes, and nothing lies there but remote roots, empty.

    Args:
        nodes: where to look.
        kept: paths under HOME that may be there.
    """
    for node in nodes:
        until(lambda node=node: not node.processes(), f"no process is left: {node.processes()}")
        allowed = {f"{HOME}/{path}" for path in (".orch", *kept)}
        assert [path for path in node.left() if path not in allowed] == []
