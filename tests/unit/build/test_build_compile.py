"""Compilers that hang, are killed or cannot start; what killed controllers left; caches of all kinds."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from declared import pair

from orchestrator.build import compiler
from orchestrator.build.compile import Made, Program, build_programs
from orchestrator.build.kept import FOLDER, keep, recall
from orchestrator.errors import Label, RefusedError, UndecidedError

CONTENT = Path(__file__).resolve().parents[3]
X86 = "x86_64-linux"
PATIENCE_S = 60


class Asked(Exception):  # noqa: N818  # what a check raises is its own affair
    """Somebody asks the build to stop."""


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < limit, "it never came"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    """A zombie is as good as gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of our own, to see what is left in it."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def zig(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a shell script in the compiler's place; it may note its process in `$NOTED`."""
    assert temporary.exists()

    def put(script: str, mode: int = 0o700) -> None:
        package = tmp_path / "site" / "ziglang"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "zig").write_text(f"#!/bin/sh\nNOTED={tmp_path}/noted\n{script}\n")
        (package / "zig").chmod(mode)
        monkeypatch.syspath_prepend(str(package.parent))

    return put


def build(tmp_path: Path, check: Callable[[], None] = lambda: None) -> tuple[Program, ...]:
    """Both roles of a pair, side by side, nothing kept."""
    plan = pair(tmp_path / "declared").plan
    return build_programs(
        plan, [(role, Made(X86)) for role in plan.roles], CONTENT, None, workers=2, check=check
    )


HANGS = 'sleep 600 & echo "$$ $!" >"$NOTED.$$"; mv "$NOTED.$$" "$NOTED-$$"; wait'


def hanging(tmp_path: Path) -> list[int]:
    """Processes that compilers noted, once both have."""
    return [int(pid) for path in tmp_path.glob("noted-*") for pid in path.read_text().split()]


def nothing_is_left(tmp_path: Path, temporary: Path) -> None:
    pids = hanging(tmp_path)
    assert len(pids) == 4
    until(lambda: all(is_gone(pid) for pid in pids))
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("cause", [Asked, KeyboardInterrupt])
def test_what_the_check_raises_ends_every_compiler(
    tmp_path: Path, temporary: Path, zig: Callable[[str], None], cause: type[BaseException]
) -> None:
    zig(HANGS)

    def check() -> None:
        if len(hanging(tmp_path)) == 4:
            raise cause

    with pytest.raises(cause):
        build(tmp_path, check)
    nothing_is_left(tmp_path, temporary)


def test_a_compiler_that_does_not_end_is_ended(
    tmp_path: Path, temporary: Path, zig: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    zig(HANGS)
    monkeypatch.setattr(compiler, "DEADLINE_S", 2.0)
    with pytest.raises(UndecidedError, match="did not end within 2 s for coordinator"):
        build(tmp_path)
    nothing_is_left(tmp_path, temporary)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("kill -KILL $$", "was ended by SIGKILL while it made coordinator; `orch doctor`"),
        ("kill -ABRT $$", "was ended by SIGABRT"),
        ("exit 0", "left no program for coordinator: No such file"),
        ("echo 'error: NoSpaceLeft' >&2; exit 1", "found no room for coordinator .got NoSpaceLeft"),
    ],
)
def test_what_is_no_word_of_the_compilers_decides_nothing(
    tmp_path: Path, temporary: Path, zig: Callable[[str], None], script: str, said: str
) -> None:
    zig(script)
    with pytest.raises(UndecidedError, match=said):
        build(tmp_path)
    assert list(temporary.iterdir()) == []


def test_what_a_compiler_says_is_a_refusal_whatever_bytes_it_uses(
    tmp_path: Path, temporary: Path, zig: Callable[[str], None]
) -> None:
    zig("printf 'no \\377 such thing\\n' >&2; exit 1")
    with pytest.raises(RefusedError, match=r"program of coordinator: no . such thing") as refused:
        build(tmp_path)
    assert [refusal.label for refusal in refused.value.refusals] == [Label.COMPILER]
    assert list(temporary.iterdir()) == []


def test_a_compiler_that_says_much_is_heard_to_its_end(
    tmp_path: Path, temporary: Path, zig: Callable[[str], None]
) -> None:
    zig("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1")
    with pytest.raises(RefusedError) as refused:
        build(tmp_path)
    assert str(refused.value).count("x") > 60_000
    assert list(temporary.iterdir()) == []


def test_a_compiler_that_cannot_be_started_decides_nothing(
    tmp_path: Path, temporary: Path, zig: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    zig("exit 0", 0o600)
    with pytest.raises(UndecidedError, match=r"Permission denied: .*zig"):
        build(tmp_path)
    (tmp_path / "site" / "ziglang" / "zig").unlink()
    with pytest.raises(UndecidedError, match="cannot be started for coordinator: No such file"):
        build(tmp_path)
    assert list(temporary.iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(UndecidedError, match="cannot be started for coordinator: No such file"):
        build(tmp_path)


def test_folders_of_controllers_that_are_gone_are_removed(
    tmp_path: Path, temporary: Path, zig: Callable[[str], None]
) -> None:
    """A controller is killed at work; its folder is gone after the next build, a living one's is not."""
    zig(HANGS)
    script = f"import sys, tempfile; tempfile.tempdir = {str(temporary)!r}; sys.path[:0] = sys.argv[1:]"
    script += "; import test_build_compile, pathlib; test_build_compile.build(pathlib.Path(sys.argv[1]))"
    paths = [
        str(tmp_path),
        str(tmp_path / "site"),
        str(Path(__file__).parent),
        str(CONTENT / "tests" / "unit"),
    ]
    with subprocess.Popen([sys.executable, "-c", script, *paths]) as controller:
        until(lambda: len(hanging(tmp_path)) == 4)
        left = set(temporary.iterdir())
        controller.kill()
    for pid in hanging(tmp_path):
        os.kill(pid, signal.SIGKILL)
    assert len(left) == 2
    living = [temporary / f"orch-build-{os.getppid()}-x", temporary / "orch-build-mine"]
    for folder in living:
        folder.mkdir()
    (tmp_path / "site" / "ziglang" / "zig").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(RefusedError):
        build(tmp_path)
    assert sorted(temporary.iterdir()) == sorted(living)


KEY, OTHER = (hashlib.sha256(name).hexdigest() for name in (b"one", b"other"))


def test_what_was_kept_is_recalled_under_its_own_key(tmp_path: Path) -> None:
    assert recall(tmp_path, KEY) is None
    keep(tmp_path, KEY, b"first")
    keep(tmp_path, OTHER, b"second")
    assert (recall(tmp_path, KEY), recall(tmp_path, OTHER)) == (b"first", b"second")
    entries = tmp_path / FOLDER
    assert sorted(path.name for path in entries.iterdir()) == sorted([KEY, OTHER])
    assert {path.stat().st_mode & 0o777 for path in entries.iterdir()} == {0o644}
    (entries / KEY).rename(tmp_path / "aside")
    (entries / OTHER).rename(entries / KEY)
    (tmp_path / "aside").rename(entries / OTHER)
    assert (recall(tmp_path, KEY), recall(tmp_path, OTHER)) == (None, None)


def as_file(cache: Path) -> None:
    cache.write_text("in the way")


def programs_as_file(cache: Path) -> None:
    cache.mkdir()
    (cache / FOLDER).write_text("in the way")


def entry_as_folder(cache: Path) -> None:
    (cache / FOLDER / KEY).mkdir(parents=True)


def entry_as_fifo(cache: Path) -> None:
    (cache / FOLDER).mkdir(parents=True)
    os.mkfifo(cache / FOLDER / KEY)


def entry_as_link(cache: Path) -> None:
    keep(cache, KEY, b"data")
    shutil.move(cache / FOLDER / KEY, cache / "elsewhere")
    (cache / FOLDER / KEY).symlink_to(cache / "elsewhere")


def dangling(cache: Path) -> None:
    cache.symlink_to(cache / "itself")


@pytest.mark.parametrize(
    "spoil", [as_file, programs_as_file, entry_as_folder, entry_as_fifo, entry_as_link, dangling]
)
def test_a_cache_that_cannot_be_used_is_none(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    cache = tmp_path / "cache"
    spoil(cache)
    assert recall(cache, KEY) is None
    keep(cache, KEY, b"data")
    assert list(tmp_path.rglob("*.part")) == []


def test_a_cache_without_room_is_none(tmp_path: Path) -> None:
    """The limit on file sizes stands for a full disk; what was begun is taken away again."""
    script = (
        "import resource, signal, sys, pathlib; from orchestrator.build.kept import keep, recall;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64));"
        f"keep(pathlib.Path(sys.argv[1]), {KEY!r}, bytes(1000));"
        f"sys.exit(recall(pathlib.Path(sys.argv[1]), {KEY!r}) is not None)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, cwd=CONTENT)
    assert list((tmp_path / FOLDER).iterdir()) == []
