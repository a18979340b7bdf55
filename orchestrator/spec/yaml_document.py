"""YAML 1.2, event by event: plain values with places, and no feature that makes a file mean two things.

Knows YAML's core schema; must not know what keys mean. ruamel.yaml parses; its constructors are never used,
so no tag can make an object. Nothing is expanded: an alias is refused where it stands.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from ruamel.yaml.reader import ReaderError

from orchestrator.errors import Label
from orchestrator.spec.places import MAX_DEPTH, MAX_INTEGER, Collector, KeyPath, dotted, visible

_INTEGER = re.compile(r"[-+]?[0-9]+\Z|0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt\s].*)?\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_BOUND = 20  # digits; longer numbers are out of range whatever they are, and slow to convert


class _StopError(Exception):
    """What follows cannot be read any more."""


def parse(text: str, found: Collector) -> tuple[Any, bool]:
    """Reads one YAML document.

    Args:
        text: the file.
        found: takes the places and refusals.

    Returns:
        The plain value, and whether the file could be read to its end.
    """
    try:
        return _Composer(YAML(typ="safe", pure=True).parse(text), text, found).document(), True
    except _StopError:
        pass
    except MarkedYAMLError as error:
        _refuse_syntax(error, text, found)
    except ReaderError as error:
        message = f"holds a character that YAML does not allow (got U+{error.character:04X}, expected text)"
        found.refuse(Label.SYNTAX, message, error.position)
    except (YAMLError, ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError):
        # the library's own slips on hostile input; the file is not to be read either way
        found.refuse(Label.SYNTAX, "is not YAML (got text that cannot be parsed, expected YAML 1.2)", 0)
    return None, False


def _refuse_syntax(error: MarkedYAMLError, text: str, found: Collector) -> None:
    """Points at the problem, or at the beginning of what it is in, if the problem is that the file ends."""
    offset = error.problem_mark.index if error.problem_mark else 0
    hint = ""
    if error.context_mark and error.context:
        begun = error.context_mark.index
        line, column = found.lines.place(begun)
        hint = f"{visible(error.context.strip())} that begins at line {line}, column {column}"
        offset = begun if not text[offset:].strip() else offset
    problem = visible((error.problem or "cannot be parsed").strip(), 120)
    message = f"is not YAML: {problem} (got a syntax error, expected YAML 1.2)"
    found.refuse(Label.SYNTAX, message, min(offset, len(text)), hint=hint)


class _Composer:
    """Builds the plain value from the events; bounded in depth, since it recurses.

    Events are `Any`: the library declares no type for what nodes and scalars carry beside their marks.
    """

    def __init__(self, events: Iterator[Any], text: str, found: Collector) -> None:
        self._events = events
        self._text = text
        self._found = found

    def document(self) -> Any:
        next(self._events)  # the start of the stream
        event = next(self._events)
        if isinstance(event, StreamEndEvent):
            self._found.put((), 0)
            self._found.refuse(Label.FIELD_MISSING, "is empty (got nothing, expected a mapping)", 0)
            raise _StopError
        self._directives(event)
        value = self._node(next(self._events), ())
        end = next(self._events)
        assert isinstance(end, DocumentEndEvent)  # noqa: S101 - the parser's own grammar
        if not isinstance(event := next(self._events), StreamEndEvent):
            message = "a second document begins here (got two documents, expected one)"
            self._found.refuse(Label.YAML_FEATURE, message, event.start_mark.index)
            raise _StopError
        return value

    def _directives(self, event: Any) -> None:
        if isinstance(event, DocumentStartEvent) and (event.version or event.tags):
            message = "directives are not used here (got a % line, expected none)"
            line = re.search("^%", self._text, re.MULTILINE)
            self._found.refuse(Label.YAML_FEATURE, message, line.start() if line else event.start_mark.index)

    def _node(self, event: Any, path: KeyPath, key: int | None = None) -> Any:
        start = event.start_mark.index
        if key is not None and isinstance(event, ScalarEvent) and start == event.end_mark.index:
            start = key  # an empty value has no text of its own
        self._found.put(path, start, key)
        if isinstance(event, AliasEvent):
            message = f"aliases are not used here (got *{visible(event.anchor)}, expected the value itself)"
            self._found.refuse(Label.YAML_FEATURE, message, start, path)
            return None
        self._properties(event, path)
        if len(path) > MAX_DEPTH:
            message = f"is nested too deep (got more than {MAX_DEPTH} levels, expected at most {MAX_DEPTH})"
            self._found.refuse(Label.SYNTAX, message, start, path[:4])
            raise _StopError
        if isinstance(event, MappingStartEvent):
            return self._mapping(path)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(path)
        assert isinstance(event, ScalarEvent)  # noqa: S101 - no other event can stand here
        if _SURROGATE.search(event.value):
            message = "holds half a character (got an escaped surrogate, expected the character itself)"
            self._found.refuse(Label.VALUE_FORMAT, message, start, path)
            return None
        return self._scalar(event, path) if event.implicit[0] and event.style is None else event.value

    def _properties(self, event: Any, path: KeyPath) -> None:
        start = event.start_mark.index
        if event.anchor is not None:
            message = f"anchors are not used here (got &{visible(event.anchor)}, expected the value alone)"
            self._found.refuse(Label.YAML_FEATURE, message, start, path)
        if event.tag is not None:
            tag = visible(str(event.tag).replace("tag:yaml.org,2002:", "!!"))
            message = f"tags are not used here (got {tag}, expected the value alone)"
            self._found.refuse(Label.YAML_FEATURE, message, start, path)

    def _sequence(self, path: KeyPath) -> list[Any]:
        values: list[Any] = []
        while not isinstance(event := next(self._events), SequenceEndEvent):
            values.append(self._node(event, (*path, len(values))))
        return values

    def _mapping(self, path: KeyPath) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not isinstance(event := next(self._events), MappingEndEvent):
            start = event.start_mark.index
            name = self._key(event, path)
            if name is None or name in values:
                # what stands under a key that does not count is read for its own faults, out of the way
                aside = (*path, "", len(self._found.places))
                if name is not None:
                    self._duplicate(path, name, start)
                self._node(next(self._events), aside)
                continue
            values[name] = self._node(next(self._events), (*path, name), start)
        return values

    def _duplicate(self, path: KeyPath, name: str, start: int) -> None:
        first = self._found.places[*path, name].key
        line = first[0] if first else 0
        message = f"stands twice (got `{visible(name)}` again, expected it once: first on line {line})"
        self._found.refuse(Label.KEY_DUPLICATE, message, start, (*path, name))

    def _key(self, event: Any, path: KeyPath) -> str | None:
        """Gives the key, or None where it is refused."""
        start = event.start_mark.index
        if not isinstance(event, ScalarEvent):
            aside = (*path, "", len(self._found.places))
            message = "a key is text (got something else, expected a name)"
            self._found.refuse(Label.VALUE_TYPE, message, start, path)
            self._node(event, aside)
            return None
        self._properties(event, path)
        if _SURROGATE.search(event.value):
            message = "a key is text (got an escaped surrogate, expected a name)"
            self._found.refuse(Label.VALUE_FORMAT, message, start, path)
            return None
        plain = event.implicit[0] and event.style is None
        if plain and event.value == "<<":
            message = "merge keys are not used here (got <<, expected the keys themselves)"
            self._found.refuse(Label.YAML_FEATURE, message, start, path)
            return None
        if plain and (event.value in _WORDS or _INTEGER.match(event.value) or _FLOAT.match(event.value)):
            shown = visible(event.value) or "nothing"
            message = f"a key is text (got {shown}, expected a name, or the same in quotes)"
            self._found.refuse(Label.VALUE_TYPE, message, start, path)
            return None
        return str(event.value)

    def _scalar(self, event: Any, path: KeyPath) -> Any:
        """Gives a plain scalar's value after YAML 1.2's core schema."""
        text = event.value
        start = event.start_mark.index
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.match(text):
            return self._integer(text, start, path)
        if _FLOAT.match(text) or _NOT_FINITE.match(text):
            value = math.nan if "n" in text.lower() else float(text)
            return value if math.isfinite(value) else self._out_of_range(text, start, path, "a finite number")
        if _TIMESTAMP.match(text):
            message = f"timestamps are not used here (got {visible(text)}, expected it in quotes)"
            self._found.refuse(Label.YAML_FEATURE, message, start, path)
            return None
        return text

    def _integer(self, text: str, start: int, path: KeyPath) -> Any:
        digits = text.lstrip("+-")
        if len(digits) > 1 and digits[0] == "0" and digits[1] not in "ox":
            message = f"a leading zero means octal to some readers (got {visible(text)}, expected none)"
            self._found.refuse(Label.VALUE_FORMAT, message, start, path)
            return None
        value = int(text, 0) if len(text) <= _BOUND else MAX_INTEGER + 1
        if abs(value) > MAX_INTEGER:
            return self._out_of_range(text, start, path, f"at most {MAX_INTEGER}")
        return value

    def _out_of_range(self, text: str, start: int, path: KeyPath, expected: str) -> Any:
        message = f"`{dotted(path)}` is out of range (got {visible(text, 30)}, expected {expected})"
        self._found.refuse(Label.VALUE_RANGE, message, start, path)
        return None
