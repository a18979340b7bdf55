"""What pydantic found wrong, as refusals of ours: our labels, our words, at the place in the file.

Knows pydantic's error types; must not know any kind of file. Pydantic's own sentences never reach a user.
"""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from orchestrator.errors import Label, Refusal
from orchestrator.spec.document import Document
from orchestrator.spec.places import dotted, visible
from orchestrator.spec.units import complain, describe

_TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "tuple_type": "a list",
}
_RANGES = {
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le}",
    "finite_number": "a finite number",
}
_LENGTHS = {
    "too_short": "{min_length} or more",
    "too_long": "{max_length} or fewer",
}

MANY = 100  # faults of one kind in one file; more are told without a search for what was meant
_LONG_NAME = 100
_MANY_NAMES = 500
_SHOWN_NAMES = 16

Model = TypeVar("Model", bound=BaseModel)


class FileModel(BaseModel):
    """Base of everything that is read from a file: frozen, no key too many, no value of another type."""

    # a model is built when a file of its kind is read: a command reads two or three of the kinds
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


@dataclass(frozen=True)
class TextLike:
    """Says of a text that all of it is like a pattern; `expected` says the pattern in words."""

    pattern: str
    expected: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._read, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "pattern": f"^({self.pattern})$"}

    def _read(self, value: str) -> str:
        if re.fullmatch(self.pattern, value, re.ASCII) is None:
            raise complain(Label.VALUE_FORMAT, f"(got {describe(value)}, expected {self.expected})")
        return value


def suggest(name: str, known: Collection[str]) -> str:
    """Gives "did you mean `x`?" for a name that is nearly a known one, else nothing."""
    if len(name) > _LONG_NAME or len(known) > _MANY_NAMES:
        return ""  # a search would take longer than the answer is worth
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else ""


def check(document: Document, model: type[Model]) -> tuple[Model | None, tuple[Refusal, ...]]:
    """Checks a document against a model.

    Args:
        document: the file.
        model: the model of its kind.

    Returns:
        The model's instance, or None and everything that is wrong, in no order.
    """
    try:
        return model.model_validate(_tuples(document.value)), ()
    except ValidationError as error:
        faults = error.errors(include_url=False)
    # pydantic counts the entries that are right; a list is not short because some are wrong
    faults = [fault for fault in faults if fault["type"] != "too_short" or not fault["input"]]
    return None, tuple(
        _refusal(document, model, fault, may_suggest=number < MANY) for number, fault in enumerate(faults)
    )


def _tuples(value: Any) -> Any:
    """Gives the same tree with tuples for lists: the models hold tuples, and are strict."""
    if isinstance(value, dict):
        return {key: _tuples(part) for key, part in value.items()}
    return tuple(_tuples(part) for part in value) if isinstance(value, list) else value


def _refusal(
    document: Document, model: type[BaseModel], fault: Mapping[str, Any], *, may_suggest: bool
) -> Refusal:
    loc = tuple(fault["loc"])
    kind, context = fault["type"], fault.get("ctx", {})
    on_key = bool(loc) and loc[-1] == "[key]"
    path = loc[:-1] if on_key else loc
    name = dotted(path[-2:] if path and isinstance(path[-1], int) else path[-1:]) or "the file"
    if kind == "missing":
        field = _fields(model, path[:-1]).get(str(path[-1]))
        expected = (field.description or "one").rstrip(".") if field else "one"
        return document.at(
            Label.FIELD_MISSING, f"`{name}` is missing (got nothing, expected {expected})", path
        )
    if kind == "extra_forbidden":
        known = _fields(model, path[:-1])
        message = f"`{name}` is not a key here (got `{name}`, expected {one_of(known)})"
        hint = suggest(str(path[-1]), known) if may_suggest else ""
        return document.at(Label.KEY_UNKNOWN, message, path, on_key=True, hint=hint)
    label, said, hint = _explain(kind, context, fault["input"])
    return document.at(label, f"`{name}` {said}", path, on_key=on_key, hint=hint)


def _explain(kind: str, context: Mapping[str, Any], value: Any) -> tuple[Label, str, str]:
    """Gives label, what is wrong, and a hint, for a value that stands at the right key."""
    got = describe(value)
    if kind == "orch":
        return Label(context["label"]), f"is not valid {context['message']}", context["hint"]
    if kind in _TYPES:
        return Label.VALUE_TYPE, f"is of the wrong type (got {got}, expected {_TYPES[kind]})", ""
    if kind in _RANGES:
        return (
            Label.VALUE_RANGE,
            f"is out of range (got {got}, expected {_RANGES[kind].format(**context)})",
            "",
        )
    if kind in _LENGTHS:
        length = f"{_LENGTHS[kind].format(**context)} entries"
        return (
            Label.VALUE_RANGE,
            f"has the wrong length (got {context['actual_length']}, expected {length})",
            "",
        )
    if kind == "literal_error":
        choices = [choice.strip("'") for choice in context["expected"].replace(" or ", ", ").split(", ")]
        hint = suggest(value, choices) if isinstance(value, str) else ""
        return Label.VALUE_CHOICE, f"is not one of the choices (got {got}, expected {one_of(choices)})", hint
    expected = f"text like {context['pattern']}" if "pattern" in context else "another value"
    if kind == "string_too_short":
        got, expected = "empty text", "text"
    return Label.VALUE_FORMAT, f"is not valid (got {got}, expected {expected})", ""


def one_of(names: Collection[str]) -> str:
    """Gives "a, b or c", and of very many names the first few."""
    shown = [visible(name) for name in islice(names, _SHOWN_NAMES)]
    if len(names) > _SHOWN_NAMES:
        shown.append(f"{len(names) - _SHOWN_NAMES} more")
    return " or ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown) or "none"


def _fields(model: type[BaseModel], path: tuple[str | int, ...]) -> Mapping[str, FieldInfo]:
    """Gives the keys that a model knows at a key path."""
    current: Any = model
    for step in path:
        if isinstance(current, type) and issubclass(current, BaseModel):
            info = current.model_fields.get(str(step))
            current = info.annotation if info else None
        else:
            arguments = typing.get_args(current)
            current = arguments[0 if isinstance(step, int) else -1] if arguments else None
        current = _without_none(current)
    return current.model_fields if isinstance(current, type) and issubclass(current, BaseModel) else {}


def _without_none(annotation: Any) -> Any:
    """Gives what an annotation says beside None and metadata."""
    while typing.get_origin(annotation) in (typing.Annotated, typing.Union, types.UnionType):
        annotation = next(part for part in typing.get_args(annotation) if part is not types.NoneType)
    return annotation
