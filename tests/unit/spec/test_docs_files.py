"""Every example in `docs/files.md` is a file that its readers take, and no kind of file is left out."""

import re
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from orchestrator.plan.check import validate
from orchestrator.spec.schema import MODELS

BLOCK = re.compile(r"^```(?:yaml|toml|csv) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def examples(pytestconfig: pytest.Config) -> dict[str, str]:
    text = (pytestconfig.rootpath / "docs" / "files.md").read_text(encoding="utf-8")
    found = dict(BLOCK.findall(text))
    assert len(found) == text.count("```") // 2, "a block has no file name"
    return found


def test_the_examples_are_one_project_that_validates(
    examples: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in examples.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for program in ("fit.py", "reference.py"):  # what is in a user's own program is nobody's business
        Path("specs/runs/own").mkdir(exist_ok=True)
        Path("specs/runs/own", program).touch()
    assert validate([Path(name) for name in examples if not name.endswith(".csv")]) == ()


def test_each_kind_has_an_example_with_every_key_that_it_can_have(examples: dict[str, str]) -> None:
    keys: dict[str, set[str]] = {}
    for name, text in examples.items():
        if name.endswith(".csv"):
            continue
        value = tomllib.loads(text) if name.endswith(".toml") else YAML(typ="safe").load(text)
        kind = value.get("orch", "project/v1").removesuffix("/v1")
        keys.setdefault(kind, set()).update(value)
        known = {key for model in MODELS[kind] for key in model.model_fields}
        mentioned = {key for key in known if re.search(rf"^(# )?{key}\b", text, re.MULTILINE)}
        keys[kind] |= mentioned
    assert keys == {
        kind: {key for model in models for key in model.model_fields} for kind, models in MODELS.items()
    }
