"""A place where lanes run for real on this machine, by the `orch` command; what they leave is looked at."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
ORCH = (sys.executable, "-c", "import sys; from orchestrator.cli.main import main; sys.exit(main())")


@dataclass(frozen=True)
class Workshop:
    """A working folder with a temporary folder of its own; nothing is shared but the compiler's cache."""

    folder: Path
    cache: Path

    @property
    def environment(self) -> dict[str, str]:
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        return {**os.environ, "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(self.cache)}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*ORCH, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def orch(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=240)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def run(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        """`orch run ... --json`: exit code and the object on stdout."""
        done = self.orch("run", *arguments, "--json")
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    def lane(self, name: str, **lines: str) -> str:
        """A shipped lane with some of its lines replaced, beside a copy of the specs that it names."""
        if not (self.folder / "specs").exists():
            shutil.copytree(ROOT / "specs", self.folder / "specs")
            (self.folder / "lanes").mkdir()
        kept = [
            line
            for line in (ROOT / "lanes" / f"{name}.yaml").read_text().splitlines()
            if line.partition(":")[0] not in lines
        ]
        changed = [f"{key}: {value}" for key, value in lines.items()]
        (self.folder / "lanes" / "changed.yaml").write_text("\n".join([*kept, *changed]) + "\n")
        return "lanes/changed.yaml"

    def bundles(self) -> list[Path]:
        return sorted(
            path.parent
            for path in self.folder.glob("runs/*/stream.jsonl")
            if not path.parent.name.startswith(".")
        )

    def strays(self) -> list[str]:
        """Processes whose working folder lies in this workshop: every role's and runner's does."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "cwd").readlink().is_relative_to(self.folder / "tmp"):
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
        return found


def events(bundle: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (bundle / "stream.jsonl").read_text().splitlines()]
