"""Ways in which a file is not what it was."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def missing(path: Path) -> None:
    path.unlink()


def altered(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def socket(path: Path) -> None:
    path.unlink()
    os.mknod(path, 0o600 | stat.S_IFSOCK)
