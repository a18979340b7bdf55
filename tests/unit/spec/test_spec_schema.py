"""Schemas: what is shipped is what the models give, and every content file names its own."""

import re
from pathlib import Path

import pytest

from orchestrator.spec.reader import KINDS
from orchestrator.spec.schema import MODELS, schema, text, write

ROOT = Path(__file__).parents[3]
SHIPPED = ROOT / "specs" / "schema"
CONTENT = sorted([*ROOT.glob("specs/*/*.yaml"), *ROOT.glob("lanes/*.yaml")])


@pytest.mark.parametrize("kind", MODELS)
def test_shipped_bytes_are_the_generated_ones(kind: str) -> None:
    assert (SHIPPED / f"{kind}.schema.json").read_bytes() == text(kind).encode()


def test_nothing_else_is_shipped(tmp_path: Path) -> None:
    assert sorted(path.name for path in write(tmp_path)) == sorted(path.name for path in SHIPPED.iterdir())


def test_there_is_one_for_each_kind() -> None:
    assert set(MODELS) == {kind.partition("/")[0] for kind in KINDS} | {"project"}
    for kind in KINDS:
        assert schema(kind.partition("/")[0])["properties"]["orch"]["const"] == kind


@pytest.mark.parametrize("path", CONTENT, ids=lambda path: path.name)
def test_every_content_file_names_its_schema(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", source)
    kind = re.search(r"^orch: (\w+)/v1$", source, re.MULTILINE)
    assert named
    assert kind
    assert (path.parent / named[1]).resolve() == SHIPPED / f"{kind[1]}.schema.json"


def objects(value: object) -> list[dict[str, object]]:
    if isinstance(value, dict):
        found = [value] if value.get("type") == "object" else []
        return found + [part for child in value.values() for part in objects(child)]
    return [part for child in value for part in objects(child)] if isinstance(value, list) else []


@pytest.mark.parametrize("kind", MODELS)
def test_every_key_is_described_and_none_is_open(kind: str) -> None:
    for part in objects(schema(kind)):
        assert "additionalProperties" in part or "patternProperties" in part, part
        for name, field in part.get("properties", {}).items():  # type: ignore[attr-defined]
            assert "description" in field or "anyOf" in field or "enum" in field, name
