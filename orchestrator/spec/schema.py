"""JSON Schemas of the files that users write, for editors: generated from the very models that read them.

Knows the models; must not be asked whether a file is right: a schema says less than the readers do.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from orchestrator.spec.device import DeviceFile
from orchestrator.spec.faults import FileModel
from orchestrator.spec.lane import LaneFile
from orchestrator.spec.matrix import MatrixFile
from orchestrator.spec.pods import PodsFile
from orchestrator.spec.program_file import CommandRunFile
from orchestrator.spec.programme import ProgrammeFile
from orchestrator.spec.project import ProjectFile
from orchestrator.spec.run import RunFile
from orchestrator.spec.system import SystemFile

MODELS: dict[str, tuple[type[FileModel], ...]] = {
    "system": (SystemFile,),
    "run": (RunFile, CommandRunFile),
    "device": (DeviceFile,),
    "lane": (LaneFile, MatrixFile),
    "pods": (PodsFile,),
    "programme": (ProgrammeFile,),
    "project": (ProjectFile,),
}
"""Kind of file -> its models; a file of the kind is like one of them."""


def schema(kind: str) -> dict[str, Any]:
    """Gives the JSON Schema (draft 2020-12) of a kind of file, which is a key of `MODELS`."""
    first, *others = MODELS[kind]
    body = _plain(first.model_json_schema(mode="validation"))
    if others:
        body = {**_either(kind), "properties": {"orch": body["properties"]["orch"]}, "required": ["orch"]}
    title = f"orch {kind}" if kind != "project" else "orch.toml"
    return {**body, "$schema": GenerateJsonSchema.schema_dialect, "title": title}


def _either(kind: str) -> dict[str, Any]:
    """Gives the schema of a kind of several models, with what they share said once."""
    models = [(model, "validation") for model in MODELS[kind]]
    references, shared = models_json_schema(models)  # type: ignore[arg-type]  # invariant list of a literal
    either = {"anyOf": list(references.values()), **shared}
    text = json.dumps(either)
    # pydantic keeps what only a default's type names, where several models are asked for
    named = {key: part for key, part in shared["$defs"].items() if f'"#/$defs/{key}"' in text}
    return {**either, "$defs": _plain(named)}


def text(kind: str) -> str:
    """Gives a kind's schema as it stands in its file."""
    return json.dumps(schema(kind), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def write(folder: Path) -> tuple[Path, ...]:
    """Writes every schema as `<kind>.schema.json` into a folder, and gives the files."""
    paths = []
    for kind in MODELS:
        path = folder / f"{kind}.schema.json"
        path.write_text(text(kind), encoding="utf-8")
        paths.append(path)
    return tuple(paths)


def _plain(value: Any) -> Any:
    """Drops the titles that pydantic makes of key names: the key itself says as much."""
    if isinstance(value, dict):
        titled = isinstance(value.get("title"), str)
        return {name: _plain(part) for name, part in value.items() if not (titled and name == "title")}
    return [_plain(part) for part in value] if isinstance(value, list) else value
