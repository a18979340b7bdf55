"""TOML 1.0: values from `tomllib`, places from the syntax tree of tree-sitter-toml.

Knows TOML; must not know what keys mean. The two agree on what a file holds, so the tree is asked only where
things stand, and `tomllib` only what they are.
"""

from __future__ import annotations

import bisect
import contextlib
import datetime as dt
import math
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

from orchestrator.errors import Label
from orchestrator.spec.places import MAX_DEPTH, MAX_INTEGER, Collector, KeyPath, Place, dotted, visible

_KEYS = ("bare_key", "quoted_key", "dotted_key")
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")


def parse(text: str, found: Collector) -> tuple[Any, bool]:
    """Reads one TOML document.

    Args:
        text: the file.
        found: takes the places and refusals.

    Returns:
        The plain value, and whether the file could be read to its end.
    """
    found.put((), 0)
    data = text.encode()
    root = Parser(Language(tree_sitter_toml.language())).parse(data).root_node
    walk = _Walk(data, found)
    if not walk.too_deep(root):
        walk.document(root)
    if walk.stopped:
        return None, False
    try:
        value = tomllib.loads(walk.without_duplicates())
    except tomllib.TOMLDecodeError as error:
        match = _PLACE.search(str(error))
        problem = str(error)[: match.start()] if match else str(error)
        place = (int(match[1]), int(match[2])) if match and match[1] else None
        message = f"is not TOML: {visible(problem, 120)} (got a syntax error, expected TOML 1.0)"
        if not found.refusals:  # else it stumbles over what is refused already
            end = max(len(text) - 1, 0)
            found.refuse(Label.SYNTAX, message, found.lines.offset(place) if place else end)
        return None, False
    except (ValueError, RecursionError):
        found.refuse(Label.SYNTAX, "is not TOML (got text that cannot be parsed, expected TOML 1.0)", 0)
        return None, False
    return _plain(value, (), found), True


class _Walk:
    """Goes through the syntax tree once, noting places and keys that stand twice."""

    def __init__(self, data: bytes, found: Collector) -> None:
        self._data = data
        self._found = found
        self._continuations = [index for index, byte in enumerate(data) if byte & 0xC0 == 0x80]  # noqa: PLR2004
        self._arrays: dict[KeyPath, int] = {}
        self._assigned: dict[KeyPath, int] = {}
        self._duplicates: list[Node] = []
        self.stopped = False

    def too_deep(self, root: Node) -> bool:
        """Says whether values nest deeper than allowed, without recursion."""
        level = [root]
        for _ in range(4 * MAX_DEPTH):  # a level of values is two or three levels of the tree
            level = [child for node in level for child in node.children if child.child_count]
            if not level:
                return False
        self._stop(level[0])
        return True

    def _stop(self, node: Node) -> None:
        if not self.stopped:
            message = f"is nested too deep (got more than {MAX_DEPTH} levels, expected at most {MAX_DEPTH})"
            self._found.refuse(Label.SYNTAX, message, self._offset(node))
        self.stopped = True

    def without_duplicates(self) -> str:
        """Gives the text with every pair that stands twice blanked, so that the rest can be read."""
        data = bytearray(self._data)
        for node in self._duplicates:
            blank = bytes(byte if byte in b"\r\n" else 0x20 for byte in data[node.start_byte : node.end_byte])
            data[node.start_byte : node.end_byte] = blank
        return data.decode()

    def document(self, root: Node) -> None:
        for node in root.named_children:
            if node.type == "pair":
                self._pair(node, ())
            elif node.type == "table":
                self._table(node, array=False)
            elif node.type == "table_array_element":
                self._table(node, array=True)

    def _table(self, node: Node, *, array: bool) -> None:
        children = node.named_children
        head = next((child for child in children if child.type in _KEYS), None)
        if head is None:
            return
        parts = list(self._parts(head))
        path = self._open(parts[:-1], ())
        name, start = parts[-1]
        path = (*path, name)
        if array:
            self._found.places.setdefault(path, self._place(node, start))
            index = self._arrays[path] = self._arrays.get(path, -1) + 1
            path = (*path, index)
            self._found.put(path, self._offset(node))
        elif not self._twice(path, start):
            self._found.places[path] = self._place(node, start)
        for child in children:
            if child.type == "pair":
                self._pair(child, path)

    def _pair(self, node: Node, base: KeyPath) -> None:
        children = node.named_children
        if len(children) < 2 or children[0].type not in _KEYS:  # noqa: PLR2004 - a key and a value
            return
        parts = list(self._parts(children[0]))
        path = (*self._open(parts[:-1], base), parts[-1][0])
        if self._twice(path, parts[-1][1]):
            self._duplicates.append(node)
            return
        self._value(children[1], path, parts[-1][1])

    def _value(self, node: Node, path: KeyPath, key: int | None = None) -> None:
        self._found.put(path, self._offset(node), key)
        if len(path) > MAX_DEPTH:
            self._stop(node)
            return
        children = [child for child in node.named_children if child.type != "comment"]
        if node.type == "array":
            for index, child in enumerate(children):
                self._value(child, (*path, index))
        elif node.type == "inline_table":
            for child in children:
                if child.type == "pair":
                    self._pair(child, path)

    def _open(self, parts: list[tuple[str, int]], base: KeyPath) -> KeyPath:
        """Goes down a dotted key, into the last element where it names an array of tables."""
        path = base
        for name, start in parts:
            path = (*path, name)
            if path not in self._found.places:
                self._found.put(path, start, start)
            if path in self._arrays:
                path = (*path, self._arrays[path])
        return path

    def _twice(self, path: KeyPath, key: int) -> bool:
        if (first := self._assigned.get(path)) is not None:
            line = self._found.lines.place(first)[0]
            shown = visible(str(path[-1]))
            message = f"stands twice (got `{shown}` again, expected it once: first on line {line})"
            self._found.refuse(Label.KEY_DUPLICATE, message, key, path)
            return True
        self._assigned[path] = key
        return False

    def _place(self, node: Node, key: int) -> Place:
        return Place(self._found.lines.place(self._offset(node)), self._found.lines.place(key))

    def _parts(self, node: Node) -> Iterator[tuple[str, int]]:
        """Yields the names of a dotted key with the offset of each."""
        if node.type == "dotted_key":
            for child in node.named_children:
                yield from self._parts(child)
            return
        text = self._data[node.start_byte : node.end_byte].decode()
        if node.type == "quoted_key":
            with contextlib.suppress(tomllib.TOMLDecodeError):  # then the whole file is refused for it
                text = next(iter(tomllib.loads(f"{text} = 0")))
        yield text, self._offset(node)

    def _offset(self, node: Node) -> int:
        return node.start_byte - bisect.bisect_left(self._continuations, node.start_byte)


def _plain(value: Any, path: KeyPath, found: Collector) -> Any:
    """Keeps what both notations have, and refuses dates and numbers that JSON cannot carry."""
    if isinstance(value, dict):
        return {name: _plain(part, (*path, name), found) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part, (*path, index), found) for index, part in enumerate(value)]
    if isinstance(value, dt.date | dt.time):
        message = f"dates are not used here (got {value.isoformat()}, expected it in quotes)"
        return _refuse(Label.VALUE_TYPE, message, path, found)
    if isinstance(value, float) and not math.isfinite(value):
        message = f"`{dotted(path)}` is out of range (got {value}, expected a finite number)"
        return _refuse(Label.VALUE_RANGE, message, path, found)
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        message = f"`{dotted(path)}` is out of range (got {value.bit_length()} bits, expected at most 53)"
        return _refuse(Label.VALUE_RANGE, message, path, found)
    return value


def _refuse(label: Label, message: str, path: KeyPath, found: Collector) -> None:
    found.refuse(label, message, found.offset_near(path), path)
