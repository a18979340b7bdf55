"""`orch init --command`: a lane around what a person types, valid as it is, and no guess is silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.main import main
from orchestrator.cli.own_command import read_command
from orchestrator.errors import UsageError
from orchestrator.plan.check import validate
from orchestrator.spec.read import read_lane

COMMAND = "python3 train.py --data 'my rows.csv' --steps {updates} --from={in} --to {out} --note '{\"a\": 1}'"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("")
    Path("my rows.csv").write_text("x\n")
    return tmp_path


@pytest.mark.usefixtures("here")
def test_the_lane_that_it_writes_is_valid_and_says_what_was_typed(capsys) -> None:
    assert main(["init", "--command", COMMAND]) == 0
    out, err = capsys.readouterr()
    assert "lanes/train.yaml" in out
    assert "train.py is taken for a file of the program" in err
    assert "my rows.csv is taken for an input" in err
    assert validate([Path("lanes/train.yaml"), Path("orch.toml")]) == ()
    program = read_lane(Path("lanes/train.yaml")).run.program
    assert program.argv[:4] == ("python3", "train.py", "--data", "{uses.my-rows}")
    assert program.argv[-1] == '{"a": 1}'
    assert [file.name for file in program.files] == ["train.py"]
    assert [file.name for file in program.uses] == ["my-rows"]


def test_a_project_that_is_there_stays_as_it_is(here: Path, capsys) -> None:
    assert main(["init"]) == 0
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    assert main(["init", "--command", COMMAND]) == 0
    after = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    assert {path: data for path, data in after.items() if path in before} == before
    assert sorted(path.name for path in after.keys() - before.keys()) == ["train.yaml", "train.yaml"]
    capsys.readouterr()
    assert main(["init", "--command", COMMAND]) == 2
    assert "lanes/train.yaml" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("python3 train.py --steps {updates}", "got no {in}, {out}, expected all"),
        ("python3 train.py {updates} {in} {out} > log", "no shell reads the command (got `>`"),
        ("cd /x && python3 t.py {updates} {in} {out}", "no shell reads the command (got `&&`"),
        ("python3 'train.py {updates} {in} {out}", "does not read as one"),
        ("", "got no {updates}, {in}, {out}"),
    ],
)
def test_what_is_no_command_is_told(text: str, said: str, here: Path) -> None:
    with pytest.raises(UsageError) as told:
        read_command(text, here)
    assert said in str(told.value)


@pytest.mark.usefixtures("here")
def test_an_executable_of_ones_own_is_called_where_it_lies() -> None:
    Path("bin").mkdir()
    Path("bin/Fit It").write_text("")
    command = read_command("'bin/Fit It' {updates} {in} {out}", Path())
    assert command.argv == ("./Fit It", "{updates}", "{in}", "{out}")
    assert command.name == "fit-it"
    assert command.files == (Path("bin/Fit It"),)


@pytest.mark.usefixtures("here")
def test_a_script_that_is_not_there_is_told_and_names_the_lane(capsys) -> None:
    assert main(["init", "--command", "python3 fit.py {updates} {in} {out}"]) == 0
    out, err = capsys.readouterr()
    assert "lanes/fit.yaml" in out
    assert "fit.py is not here" in err
    assert "files: []" in Path("specs/runs/fit.yaml").read_text()
