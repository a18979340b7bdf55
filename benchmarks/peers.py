"""Environments for others' programs, pinned and from PyPI, in the user's cache: orch needs none of them."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path


def environment(name: str, packages: tuple[str, ...]) -> Path | None:
    """Give the interpreter of an environment with the packages, made once; None if it cannot be had now."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "orch" / name
    python = folder / "bin" / "python"
    have = folder / "packages"
    if not have.exists() or have.read_text() != " ".join(packages):
        print(f"installing {', '.join(packages)} into {folder}", file=sys.stderr)
        try:
            venv.create(folder, clear=True, with_pip=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{', '.join(packages)} are left out: {error}", file=sys.stderr)
            return None
        have.write_text(" ".join(packages))
    return python
