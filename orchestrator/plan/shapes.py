"""Shapes: gives every node of an untyped statement its size, or says by label why it has none.

Rules: a bare name is one word, so it needs size 1; `name[i]` steps with its statement; every `[i]` in one
statement has one size; `dot` and `sum` take whole fields; a statement does not read its own target other than
at the same index, since the target changes while the statement runs.

A name whose own statement was refused is *broken*: nothing is said of what reads it, which is broken too.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.plan import grammar, tree
from orchestrator.plan.words import BINARY64, WordType


class ShapeError(Exception):
    """A statement cannot be given shapes. `offset` is the character (from 0) of the name at fault."""

    def __init__(self, message: str, offset: int, hint: str = "") -> None:
        super().__init__(message)
        self.offset = offset
        self.hint = hint


class BrokenError(Exception):
    """A statement reads or assigns a broken name, and has no other fault that shows without its size."""


@dataclass
class Scope:
    """Names that one program may use; grows as its statements assign locals.

    Attributes:
        readable: name -> words.
        writable: name -> words, for fields that the program may change.
        assigned: locals that a statement has assigned.
        why_not: names that exist but not here -> the reason, for the message.
        broken: names that refused statements would have assigned.
        word: what constants are rounded to.
    """

    readable: dict[str, int]
    writable: Mapping[str, int]
    assigned: dict[str, int] = field(default_factory=dict)
    why_not: Mapping[str, str] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    word: WordType = BINARY64

    def break_name(self, name: str) -> None:
        """Marks what a refused statement would have assigned, unless it is known all the same."""
        if name not in self.readable and name not in self.why_not:
            self.broken.add(name)


def shape(statement: grammar.RawStatement, scope: Scope) -> tree.Assignment:
    """The typed assignment; a new local enters the scope.

    Raises:
        ShapeError: an unknown name, sizes that differ, or a name used against the rules above.
        BrokenError: it reads a broken name, or assigns one again.
    """
    target = statement.target
    read = tuple(grammar.names(statement.value))
    if target.text in scope.broken or any(name.text in scope.broken for name in read):
        for name in read:
            if name.text not in scope.broken:
                _size(name, scope)
        _check_writable(target, scope)
        raise BrokenError
    stepping: dict[str, int] = {}
    value = _expression(statement.value, scope, stepping)
    sizes = sorted(set(stepping.values()))
    if len(sizes) > 1:
        shown = ", ".join(f"{name}[{size}]" for name, size in sorted(stepping.items()))
        raise ShapeError(
            f"names that step together differ in size (got {shown}, expected one size)", target.offset
        )
    size = _target_size(target, scope, sizes[0] if sizes else None)
    _check_writable(target, scope)
    if sizes and target.index is None:
        raise ShapeError(
            f"a scalar takes no [i] (got {target.text} = ..[i].., expected {target.text}[i] = ..)",
            target.offset,
        )
    _refuse_own_target(statement.value, target, size)
    local = target.text not in scope.writable
    if local:
        scope.assigned[target.text] = size
        scope.readable[target.text] = size
    return tree.Assignment(target.text, size, value, local)


def _check_writable(target: grammar.Name, scope: Scope) -> None:
    known = target.text in scope.readable or target.text in scope.why_not
    if known and target.text not in scope.writable:
        reason = scope.why_not.get(target.text, "it is read-only here, or assigned before")
        raise ShapeError(
            f"{target.text} cannot be assigned: {reason} (got {target.text}, expected another name)",
            target.offset,
        )


def _target_size(target: grammar.Name, scope: Scope, stepping: int | None) -> int:
    declared = scope.writable.get(target.text)
    if declared is None:
        if target.index is None:
            return 1
        if stepping is None:
            raise ShapeError(
                f"size of {target.text}[i] cannot be told (got no other [i], expected one on the right)",
                target.offset,
            )
        return stepping
    if target.index is None and declared != 1:
        raise ShapeError(
            f"{target.text} has {declared} words (got a scalar assignment, expected {target.text}[i])",
            target.offset,
        )
    if target.index == "i" and stepping is not None and stepping != declared:
        raise ShapeError(
            f"sizes differ (got {stepping} words for {target.text}, expected {declared})", target.offset
        )
    return declared


def _expression(  # noqa: PLR0911  # one line for each kind of node
    node: grammar.Raw, scope: Scope, stepping: dict[str, int]
) -> tree.Expression:
    match node:
        case grammar.Constant(value):
            return tree.Number(_rounded(value, scope.word))
        case grammar.Operation(_, None, right):
            return tree.Negate(_expression(right, scope, stepping))
        case grammar.Operation(operator, left, right) if left is not None:
            return tree.Binary(
                operator, _expression(left, scope, stepping), _expression(right, scope, stepping)
            )
        case grammar.Call("sqrt", (operand,)):
            return tree.SquareRoot(_expression(operand, scope, stepping))
        case grammar.Call("dot", (grammar.Name() as left_name, grammar.Name() as right_name)):
            left_size, right_size = _size(left_name, scope), _size(right_name, scope)
            if left_size != right_size:
                got = f"{left_name.text} of {left_size} and {right_name.text} of {right_size}"
                raise ShapeError(f"dot needs equal sizes (got {got}, expected one size)", left_name.offset)
            return tree.Dot(left_name.text, right_name.text, left_size)
        case grammar.Call(_, (grammar.Name() as name,)):
            return tree.Sum(name.text, _size(name, scope))
        case grammar.Name():
            return _word(node, scope, stepping)
    raise AssertionError(node)


def _rounded(value: float, word: WordType) -> float:
    if math.isinf(rounded := word.rounded(value)):
        raise ShapeError(f"constant is too large (got {value!r}, expected a finite {word.dtype} number)", 0)
    return rounded


def _word(name: grammar.Name, scope: Scope, stepping: dict[str, int]) -> tree.Word:
    size = _size(name, scope)
    if name.index == "i":
        stepping[name.text] = size
        return tree.Word(name.text, None if size > 1 else 0)
    if name.index is None and size != 1:
        expected = f"{name.text}[i], dot(..) or sum({name.text})"
        raise ShapeError(
            f"{name.text} has {size} words (got it as one number, expected {expected})", name.offset
        )
    index = 0 if name.index is None else int(name.index)
    if index >= size:
        raise ShapeError(
            f"index is past the end of {name.text} (got {index}, expected 0 to {size - 1})", name.offset
        )
    return tree.Word(name.text, index)


def _size(name: grammar.Name, scope: Scope) -> int:
    size = scope.readable.get(name.text)
    if size is not None:
        return size
    if name.text in scope.why_not:
        reason = scope.why_not[name.text]
        raise ShapeError(
            f"{name.text} cannot be read here: {reason} (got {name.text}, expected another name)", name.offset
        )
    close = difflib.get_close_matches(name.text, scope.readable, n=1)
    known = ", ".join(sorted(scope.readable)) or "none"
    raise ShapeError(
        f"name is not known here (got {name.text}, expected one of: {known})",
        name.offset,
        f"did you mean {close[0]}?" if close else "",
    )


def _refuse_own_target(node: grammar.Raw, target: grammar.Name, size: int) -> None:
    """Reading the target whole, or at a fixed index, would see words half old and half new."""
    match node:
        case grammar.Operation(_, left, right):
            if left is not None:
                _refuse_own_target(left, target, size)
            _refuse_own_target(right, target, size)
        case grammar.Call(_, arguments):
            for argument in arguments:
                _refuse_own_target(argument, target, size)
        case grammar.Name(text, index, offset) if text == target.text and index != "i" and size > 1:
            got = "it whole or at a fixed index"
            raise ShapeError(
                f"{text} changes while this statement runs (got {got}, expected {text}[i])", offset
            )
        case _:
            pass
