"""What a role refuses by itself, before it talks to anyone; nothing is written, and no peer is dialled."""

from __future__ import annotations

import os
import resource
import signal
import subprocess

import pytest
import role_plans
import role_spoil
from role_bench import ARM, X86, Setup, altered_content

from orchestrator.build.bind import section_offset
from orchestrator.build.image import read_image


def refusal(run, setup):
    run.place(setup)
    run.start()
    label = run.end("alone").label
    assert run.committed() == []
    assert run.progress("alone") == []
    return label


@pytest.mark.parametrize("at", [0, 8, 12, 24, 56, 88, 136, 168, 196, 300, 479, 480, 511])
def test_a_binding_with_one_changed_byte(bench, at):
    run = bench(role_plans.single())
    run.place(Setup())
    path = run.work("alone") / "role.elf"
    data = bytearray(path.read_bytes())
    data[section_offset(read_image(bytes(data))) + at] ^= 1
    path.write_bytes(data)
    run.start()
    assert run.labels() == {"alone": "binding"}


def test_no_binding_at_all(bench):
    run = bench(role_plans.single())
    run.place(Setup())
    path = run.work("alone") / "role.elf"
    data = path.read_bytes()
    start = section_offset(read_image(data))
    path.write_bytes(data[:start] + bytes(512) + data[start + 512 :])
    run.start()
    assert run.labels() == {"alone": "binding"}


@pytest.mark.parametrize("target", [X86, ARM])
def test_a_binding_for_another_plan(bench, target):
    assert (
        refusal(bench(role_plans.single()), Setup(targets={"alone": target}, bind={"*": {"plan": "ab" * 32}}))
        == "binding"
    )


def test_nothing_to_do(bench):
    assert refusal(bench(role_plans.single()), Setup(target=0)) == "binding"


@pytest.mark.parametrize("arguments", [[], ["a", "b"]])
def test_a_wrong_number_of_arguments(bench, arguments):
    run = bench(role_plans.single())
    run.place(Setup())
    done = subprocess.run([run.work("alone") / "role.elf", *arguments], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"binding\n")


def test_a_work_folder_that_is_not_there(bench):
    run = bench(role_plans.single())
    run.place(Setup())
    done = subprocess.run([run.work("alone") / "role.elf", "/nowhere"], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"data-chunk\n")


SPOILED = [
    role_spoil.missing,
    role_spoil.altered,
    role_spoil.truncated,
    role_spoil.longer,
    role_spoil.link,
    role_spoil.pipe,
    role_spoil.folder,
]


@pytest.mark.parametrize("target", [X86, ARM])
@pytest.mark.parametrize("spoil", SPOILED)
def test_samples_that_are_not_the_bound_ones(bench, spoil, target):
    run = bench(role_plans.single())
    run.place(Setup(targets={"alone": target}))
    spoil(run.work("alone") / "samples")
    run.start()
    assert run.labels() == {"alone": "data-chunk"}


@pytest.mark.parametrize("word", [float("nan"), float("inf"), float("-inf")])
def test_samples_that_are_not_finite(bench, word):
    case = role_plans.case(
        role_plans.MOMENTUM, (*role_plans.STAR_WORDS[:-1], word), role_plans.roles(("alone", 5))
    )
    assert refusal(bench(case), Setup()) == "non-finite"


def test_a_contribution_that_overflows(bench):
    case = role_plans.case(role_plans.SCALAR, (1e200, 1e200), role_plans.roles(("alone", 1)))
    assert refusal(bench(case), Setup()) == "non-finite"


def test_an_update_that_overflows(bench):
    case = role_plans.case(role_plans.SCALAR, (1e77, 1e154), role_plans.roles(("alone", 1)))
    run = bench(case)
    run.place(Setup(target=100))
    run.start()
    assert run.labels() == {"alone": "non-finite"}
    assert run.committed() == []


FLUSHING = {  # denormals become zero: one bit of the control register
    X86: '__asm__ volatile("ldmxcsr %0" : : "m"((const uint32_t){0x9f80}));',
    ARM: '__asm__ volatile("msr fpcr, %0" : : "r"(1ul << 24));',
}


@pytest.mark.parametrize("target", FLUSHING)
def test_a_float_environment_that_is_not_the_plain_one(bench, tmp_path, target):
    check = "    if (!machine_float_is_plain())\n"
    content = altered_content(
        tmp_path / "content", "native/main.c", check, f"    {FLUSHING[target]}\n{check}"
    )
    setup = Setup(content={"alone": content}, targets={"alone": target})
    assert refusal(bench(role_plans.single()), setup) == "float-environment"


def test_a_run_that_takes_too_long(bench):
    run = bench(role_plans.single())
    run.place(Setup(target=2**40, run_ms=300))
    run.start()
    assert run.labels() == {"alone": "run-deadline"}
    assert run.committed() == []


# Files larger than this cannot be written: the program, whose progress is the smallest of its files, begins.
def limit_file_size(size):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


@pytest.mark.parametrize("size", [0, 100, 300])
def test_a_file_that_cannot_be_written(bench, size):
    """No progress at all, no whole shard, and a whole shard but no whole manifest."""
    run = bench(role_plans.single())
    run.place(Setup(target=1))
    run.start(preexec_fn=limit_file_size(size))
    assert run.labels() == {"alone": "write-failed"}
    assert run.committed() == []


IN_THE_WAY = [role_spoil.link, role_spoil.pipe, role_spoil.folder, role_spoil.socket]


@pytest.mark.parametrize("target", [X86, ARM])
@pytest.mark.parametrize("spoil", IN_THE_WAY)
def test_progress_that_is_no_file(bench, spoil, target):
    run = bench(role_plans.single())
    run.place(Setup(target=1, targets={"alone": target}))
    path = run.work("alone") / "progress"
    path.touch()
    spoil(path)
    run.start()
    assert run.labels() == {"alone": "write-failed"}
    assert run.committed() == []


def test_progress_that_is_a_pipe_with_a_reader(bench):
    run = bench(role_plans.single())
    run.place(Setup(target=1))
    path = run.work("alone") / "progress"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        run.start()
        assert run.labels() == {"alone": "write-failed"}
        assert os.read(reader, 1) == b""
    finally:
        os.close(reader)


@pytest.mark.parametrize("spoil", IN_THE_WAY)
def test_a_port_that_nobody_can_be_told_of(bench, spoil):
    run = bench(role_plans.pair())
    run.place(Setup())
    path = run.work("coordinator") / "listening"
    path.touch()
    spoil(path)
    run.start("coordinator")
    assert run.labels() == {"coordinator": "write-failed"}


def test_a_checkpoint_folder_that_cannot_be_made(bench):
    run = bench(role_plans.single())
    run.place(Setup(target=1))
    (run.work("alone") / "checkpoint").write_text("in the way")
    run.start()
    assert run.labels() == {"alone": "write-failed"}


def test_a_manifest_whose_name_is_taken_by_a_folder(bench):
    run = bench(role_plans.single())
    run.place(Setup(target=1))
    (run.work("alone") / "checkpoint" / "1.manifest.json").mkdir(parents=True)
    run.start()
    assert run.labels() == {"alone": "write-failed"}
    assert run.committed() == ["1.manifest.json"]  # the folder


def test_a_full_disk(bench):
    run = bench(role_plans.single())
    run.place(Setup(target=1))
    small = run.work("alone") / "checkpoint"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", small], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("only root can mount a small disk")
    try:
        (small / "other").write_bytes(bytes(4096))
        run.start()
        assert run.labels() == {"alone": "write-failed"}
        assert run.committed() == ["other"]
    finally:
        subprocess.run(["umount", small], check=True)
