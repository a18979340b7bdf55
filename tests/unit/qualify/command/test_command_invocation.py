"""How a program is called: written down and read back, and made into a job only on its node."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from orchestrator.qualify.command.invocation import NO_LIMIT, Invocation

CALLED = Invocation(
    argv=("{setup}/venv/bin/python", "fit.py", "{work}/checkpoint/state", '{"a": 1}'),
    environment=(("DATA", "{work}/uses/data/d.csv"),),
    inherit=("HOST",),
    target=5,
    resume=False,
    file_blocks=NO_LIMIT,
    folder="{work}/checkpoint",
    connect_ms=1,
    round_ms=2,
    run_ms=3,
)


def test_it_is_read_back_as_it_was_written() -> None:
    assert Invocation.from_json(CALLED.as_json()) == CALLED


def test_folders_are_filled_in_on_the_node() -> None:
    root, work = PurePosixPath("/r"), PurePosixPath("/r/t/w")
    assert CALLED.words(work, root)[4:] == (
        "/r/t/w/checkpoint",
        "-1",
        "/r/setup/venv/bin/python",
        "fit.py",
        "/r/t/w/checkpoint/state",
        '{"a": 1}',
    )
    assert CALLED.variables(work, root) == (("DATA", "/r/t/w/uses/data/d.csv"),)


@pytest.mark.parametrize("shell", ["sh", "bash", "dash"])
def test_no_word_passes_the_shell_that_enters(shell: str, tmp_path) -> None:
    words = ("printf", "%s|", "a b", "$HOME", "`id`", "*", "", "-x")
    called = replace(CALLED, argv=words, folder=f"{tmp_path}/made here")
    argv = [shell, *called.words(PurePosixPath("/w"), PurePosixPath("/r"))[1:]]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "a b|$HOME|`id`|*||-x|")
    assert (tmp_path / "made here").is_dir()


@pytest.mark.parametrize("shell", ["sh", "bash --posix", "dash"])
@pytest.mark.parametrize("blocks", [0, 1, 3])
def test_a_limit_cuts_a_file_at_its_blocks(shell: str, blocks: int, tmp_path) -> None:
    target = tmp_path / "big"
    called = replace(CALLED, argv=("sh", "-c", f"head -c 5000 /dev/zero > {target}"), file_blocks=blocks)
    words = replace(called, folder=str(tmp_path)).words(PurePosixPath("/w"), PurePosixPath("/r"))
    done = subprocess.run([*shell.split(), *words[1:]], capture_output=True, check=False)
    assert done.returncode != 0
    assert target.stat().st_size == 512 * blocks
