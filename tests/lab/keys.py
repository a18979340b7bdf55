"""Key pairs for the tests, made anew each time by ssh-keygen."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make_key(path: Path, *, kind: str = "ed25519", comment: str = "", passphrase: str = "") -> Path:
    """Makes `path` and `path`.pub."""
    options = ("-b", "2048") if kind == "rsa" else ()
    subprocess.run(
        ["ssh-keygen", "-q", "-t", kind, *options, "-N", passphrase, "-C", comment, "-f", str(path)],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return path


def public(path: Path) -> str:
    """The line that goes into authorized_keys."""
    return Path(f"{path}.pub").read_text()


def fingerprint(path: Path) -> str:
    """`SHA256:...` as ssh-keygen -l prints it."""
    said = subprocess.run(
        ["ssh-keygen", "-l", "-E", "sha256", "-f", f"{path}.pub"], check=True, capture_output=True, text=True
    )
    return said.stdout.split()[1]
