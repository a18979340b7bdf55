"""The grammar of a system's statements: text -> an untyped tree. Never evaluated as Python.

    statement  = target "=" sum
    target     = NAME [ "[" "i" "]" ]
    sum        = product { ("+" | "-") product }
    product    = factor { ("*" | "/") factor }
    factor     = "-" factor | atom
    atom       = NUMBER | "sqrt" "(" sum ")" | "dot" "(" NAME "," NAME ")" | "sum" "(" NAME ")"
               | NAME [ "[" ( "i" | INTEGER ) "]" ] | "(" sum ")"

Numbers and names are ASCII; blanks may stand between any two words. Every tree is bounded in height, so
whatever walks one may recurse. Knows no names' sizes: `orchestrator.plan.shapes` gives every node its shape.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from orchestrator.plan.tree import Operator

FUNCTIONS = ("sqrt", "dot", "sum")
MAX_TEXT = 4096
# of nested parentheses and signs, and of the tree. A plan's identity is JSON of at most 64 levels, of which
# the plan itself takes four; C compilers take 256 nested parentheses.
MAX_DEPTH = 48
MAX_NAME = 128  # names of results stand in lines of a fixed length
MAX_INDEX_DIGITS = 9

_BLANKS = re.compile(r"\s*", re.ASCII)
_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<mark>[-+*/=()\[\],])",
    re.ASCII,
)
_ASSIGNED = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\[[^]=]*\]?)?\s*=", re.ASCII)


class GrammarError(Exception):
    """A statement is not in the grammar. `offset` is the character (from 0) where that shows."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True)
class Name:
    """A name as written: bare (index None), `[i]` (index "i"), or with a constant index."""

    text: str
    index: str | int | None
    offset: int


@dataclass(frozen=True)
class Constant:
    """A number as written, rounded to binary64."""

    value: float


@dataclass(frozen=True)
class Call:
    """`sqrt(expression)`, `dot(name, name)` or `sum(name)`."""

    function: str
    arguments: tuple[Raw, ...]
    offset: int


@dataclass(frozen=True)
class Operation:
    """A binary operation, or a negation (left is None)."""

    operator: Operator
    left: Raw | None
    right: Raw


Raw = Name | Constant | Call | Operation
_Inner = TypeVar("_Inner", Call, Operation)


@dataclass(frozen=True)
class RawStatement:
    """`target = value`, untyped."""

    target: Name
    value: Raw


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    offset: int


def parse(text: str) -> RawStatement:
    """One statement as an untyped tree.

    Raises:
        GrammarError: the text is not a statement; the message ends "(got X, expected Y)".
    """
    if len(text) > MAX_TEXT:
        raise GrammarError(
            f"statement is too long (got {len(text)} characters, expected at most {MAX_TEXT})", 0
        )
    parser = _Parser(_tokens(text), len(text))
    target = parser.name(parser.take("name", "a name to assign"))
    if isinstance(target.index, int):
        got, expected = f"{target.text}[{target.index}]", f"{target.text}[i]"
        raise GrammarError(
            f"only whole scalars and `name[i]` are assigned (got {got}, expected {expected})", target.offset
        )
    parser.mark("=")
    value = parser.sum(0)
    if parser.peek is not None:
        raise GrammarError(
            f"statement goes on (got {parser.peek.text!r}, expected an operator or the end)",
            parser.peek.offset,
        )
    return RawStatement(target, value)


def names(node: Raw) -> Iterator[Name]:
    """Every name in a tree, from left to right."""
    match node:
        case Name():
            yield node
        case Call(_, arguments):
            for argument in arguments:
                yield from names(argument)
        case Operation(_, left, right):
            if left is not None:
                yield from names(left)
            yield from names(right)
        case _:
            return


def assigned_name(text: str) -> str | None:
    """The name that a text would assign were it a statement; None where that cannot be told."""
    match = _ASSIGNED.match(text)
    return match and match[1]


def _tokens(text: str) -> list[_Token]:
    tokens = []
    at = _after_blanks(text, 0)
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise GrammarError(
                f"character is not in the grammar (got {text[at]!r}, expected an operand or operator)", at
            )
        tokens.append(_Token(match.lastgroup, match[0], at))
        at = _after_blanks(text, match.end())
    return tokens


def _after_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _height(node: Raw) -> int:
    match node:
        case Call(_, arguments):
            return 1 + max(_height(argument) for argument in arguments)
        case Operation(_, left, right):
            return 1 + max(_height(right), _height(left) if left is not None else 0)
        case _:
            return 1


def _bounded(node: _Inner, offset: int) -> _Inner:
    """The node, if its tree is not too high; `offset` is the place of its operator or function."""
    if (height := _height(node)) > MAX_DEPTH:
        raise GrammarError(
            "expression is nested too deeply: a long sum or product nests too, to its left"
            f" (got {height} levels, expected at most {MAX_DEPTH})",
            offset,
        )
    return node


class _Parser:
    """Recursive descent over the tokens of one statement, bounded: hostile text cannot exhaust the stack."""

    def __init__(self, tokens: list[_Token], end: int) -> None:
        self._tokens = tokens
        self._end = end
        self._at = 0

    @property
    def peek(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    @property
    def offset(self) -> int:
        """Where the next token stands."""
        return self.peek.offset if self.peek else self._end

    def take(self, kind: str, expected: str) -> _Token:
        token = self.peek
        if token is None or token.kind != kind:
            got = repr(token.text) if token else "the end"
            raise GrammarError(f"statement is cut or misspelt (got {got}, expected {expected})", self.offset)
        self._at += 1
        return token

    def mark(self, text: str) -> None:
        token = self.peek
        if token is None or token.text != text:
            got = repr(token.text) if token else "the end"
            raise GrammarError(f"statement is cut or misspelt (got {got}, expected {text!r})", self.offset)
        self._at += 1

    def accept(self, text: str) -> bool:
        token = self.peek
        if token is None or token.text != text:
            return False
        self._at += 1
        return True

    def operator(self, *operators: Operator) -> Operator | None:
        return next((operator for operator in operators if self.accept(operator)), None)

    def sum(self, depth: int) -> Raw:
        left = self.product(depth)
        offset = self.offset
        while operator := self.operator("+", "-"):
            left = _bounded(Operation(operator, left, self.product(depth)), offset)
            offset = self.offset
        return left

    def product(self, depth: int) -> Raw:
        left = self.factor(depth)
        offset = self.offset
        while operator := self.operator("*", "/"):
            if self.peek is not None and self.peek.text == "*":
                raise GrammarError("there are no powers (got **, expected a product)", self.offset - 1)
            left = _bounded(Operation(operator, left, self.factor(depth)), offset)
            offset = self.offset
        return left

    def factor(self, depth: int) -> Raw:
        offset = self.offset
        if depth > MAX_DEPTH:
            raise GrammarError(
                f"expression is nested too deeply (got level {depth + 1}, expected at most {MAX_DEPTH})",
                offset,
            )
        if self.accept("-"):
            return _bounded(Operation("-", None, self.factor(depth + 1)), offset)
        return self.atom(depth + 1)

    def atom(self, depth: int) -> Raw:
        if self.accept("("):
            inner = self.sum(depth)
            self.mark(")")
            return inner
        token = self.peek
        if token is not None and token.kind == "number":
            self._at += 1
            value = float(token.text)
            if not math.isfinite(value):
                raise GrammarError(
                    f"constant is too large (got {token.text}, expected a finite binary64 number)",
                    token.offset,
                )
            return Constant(value)
        name = self.take("name", "a number, a name or '('")
        following = self.peek
        if name.text in FUNCTIONS and following is not None and following.text == "(":
            return self.call(name, depth)
        return self.name(name)

    def call(self, function: _Token, depth: int) -> Call:
        self.mark("(")
        arguments: tuple[Raw, ...]
        if function.text == "sqrt":
            arguments = (self.sum(depth),)
        else:
            arguments = (self.whole(),)
            if function.text == "dot":
                self.mark(",")
                arguments += (self.whole(),)
        self.mark(")")
        return _bounded(Call(function.text, arguments, function.offset), function.offset)

    def whole(self) -> Name:
        token = self.take("name", "the name of a whole field")
        return Name(token.text, None, token.offset)

    def name(self, token: _Token) -> Name:
        if self.peek is not None and self.peek.text == "(" and token.text not in FUNCTIONS:
            raise GrammarError(
                f"{token.text!r} is no function here (got {token.text}(, expected {', '.join(FUNCTIONS)})",
                token.offset,
            )
        if token.text in FUNCTIONS or token.text == "i":
            raise GrammarError(
                f"{token.text!r} is a word of the grammar (got it as a name, expected another name)",
                token.offset,
            )
        if len(token.text) > MAX_NAME:
            raise GrammarError(
                f"name is too long (got {len(token.text)} characters, expected at most {MAX_NAME})",
                token.offset,
            )
        if not self.accept("["):
            return Name(token.text, None, token.offset)
        index = self.index()
        self.mark("]")
        return Name(token.text, index, token.offset)

    def index(self) -> str | int:
        token = self.peek
        if token is None or not (token.text == "i" or token.text.isdecimal()):
            got = repr(token.text) if token else "the end"
            raise GrammarError(
                f"index is neither i nor a whole number (got {got}, expected i or 0, 1, ...)", self.offset
            )
        if len(token.text) > MAX_INDEX_DIGITS:
            raise GrammarError(
                f"index is too long (got {len(token.text)} digits, expected at most {MAX_INDEX_DIGITS})",
                token.offset,
            )
        self._at += 1
        return "i" if token.text == "i" else int(token.text)
