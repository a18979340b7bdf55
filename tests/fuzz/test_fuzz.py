"""A short, always equal piece of the fuzzing of the roles' readers; `make fuzz` goes on for longer."""

from __future__ import annotations

import subprocess

import fuzzing
import pytest

COPIES = 300


@pytest.fixture(scope="module")
def compiler() -> str:
    found = fuzzing.standalone_compiler()
    if found is None:
        pytest.skip("needs a C compiler with sanitizers: clang or gcc")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("target", fuzzing.TARGETS)
def test_no_input_leads_anywhere_else(target, compiler, folder):
    program = fuzzing.build(target, folder, compiler)
    begun = []
    for name, data in fuzzing.seeds(target).items():
        begun.append(folder / f"{target}-{name}")
        begun[-1].write_bytes(data)
    files = [*begun, *fuzzing.corpus(target)]
    done = subprocess.run(
        [program, str(COPIES), *files], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stderr) == (0, f"{len(files)} files\n")


def test_a_fault_would_be_noticed(compiler, tmp_path):
    """A reader that looks one byte too far ends the program."""
    source = fuzzing.HERE / "targets" / "scan.c"
    text = source.read_text()
    assert "malloc(size + 1)" in text
    broken = tmp_path / "scan.c"
    broken.write_text(text.replace("malloc(size + 1)", "malloc(size)"))
    program = fuzzing.build(broken, tmp_path, compiler)
    seed = tmp_path / "seed"
    seed.write_bytes(fuzzing.seeds("scan")["text"])
    done = subprocess.run([program, "0", seed], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr
