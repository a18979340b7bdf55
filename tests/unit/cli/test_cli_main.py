from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from orchestrator import __version__
from orchestrator.cli.main import VERBS, main

HEAVY = (
    "paramiko",
    "sqlalchemy",
    "jinja2",
    "pydantic",
    "rich",
    "fabric",
    "ruamel",
    "elftools",
    "ClusterShell",
)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], [], ["no-such-verb"]])
def test_help_loads_nothing_but_argparse(arguments):
    """Start-up is a feature: what a verb needs is imported when that verb runs."""
    probe = (
        "import sys\n"
        "from orchestrator.cli.main import main\n"
        f"try: main({arguments!r})\n"
        "except SystemExit: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_run_is_planned_without_the_kinds_that_it_does_not_name():
    """What one role of a fleet does is answered at once, start-up included."""
    kinds = ("device", "lane", "matrix", "pods", "program_file", "programme")
    others = [*HEAVY[:3], "elftools", *(f"orchestrator.spec.{kind}" for kind in kinds)]
    arguments = ["plan", "specs/runs/hierarchy.yaml", "--role", "worker1"]
    probe = (
        "import sys\n"
        "from orchestrator.cli.main import main\n"
        f"main({arguments!r})\n"
        f"print([name for name in {others!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_help_names_every_verb_and_every_verb_is_there(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for verb in VERBS:
        assert f"\n  {verb} " in text
        module = importlib.import_module(f"orchestrator.cli.commands.{verb}")
        assert callable(module.add_arguments)
        assert callable(module.run)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb, capsys):
    with pytest.raises(SystemExit) as stop:
        main([verb, "--help"])
    assert stop.value.code == 0
    assert f"usage: orch {verb}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"), [(["help", "plan"], "usage: orch plan"), (["help"], "verbs:")]
)
def test_help_is_a_word_too(arguments, says, capsys):
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    assert code == 0
    assert says in capsys.readouterr().out


def test_verbs_are_the_modules_that_exist():
    import pkgutil

    import orchestrator.cli.commands as package

    assert set(VERBS) == {module.name for module in pkgutil.iter_modules(package.__path__)}


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"orch {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["vlaidate"], "did you mean `validate`?"),
        (["zzz"], "`orch --help` lists them"),
        (["plan"], "usage: orch plan"),
        (["plan", "a", "b"], "usage: orch plan"),
        (["--colour", "plan"], "usage: orch"),
        (["help", "pln"], "did you mean `plan`?"),
        (["run", "--res", "last"], "unrecognized arguments: --res"),
        (["evidence", "verify", "last", "--he", "0" * 64], "usage: orch evidence"),
        (["evidence"], "usage: orch evidence"),
        (["evidence", "verify", "last", "--seal", "xyz"], "no digest"),
        (["schema", "zzz"], "expected one of system, run"),
        (["judge", "no-such-bundle"], "no such bundle"),
    ],
)
def test_what_no_reading_can_mean_is_usage(arguments, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err


def test_content_may_stand_before_or_after_the_verb(capsys, tmp_path):
    for arguments in (
        ["--content", str(tmp_path), "plan", "x.yaml"],
        ["plan", "--content", str(tmp_path), "x.yaml"],
    ):
        assert main(arguments) == 1
        assert f"{tmp_path}: file-missing: is no content folder" in capsys.readouterr().err
