"""The grammar of a system's statements: text -> an untyped tree. Never evaluated as Python.

    statement  = target "=" sum
    target     = NAME [ "[" "i" "]" ]
    sum        = product { ("+" | "-") product }
    product    = factor { ("*" | "/") factor }
    factor     = "-" factor | atom
    atom       = NUMBER | "sqrt" "(" sum ")" | "dot" "(" NAME "," NAME ")" | "sum" "(" NAME ")"
               | NAME [ "[" ( "i" | INTEGER ) "]" ] | "(" sum ")"

Knows no names' sizes: `orchestrator.plan.typing_rules` gives every node its shape.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from orchestrator.plan.tree import Operator

FUNCTIONS = ("sqrt", "dot", "sum")
MAX_TEXT = 4096
MAX_DEPTH = 64

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<mark>[-+*/=()\[\],]))"
)


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
        raise GrammarError(
            f"only whole scalars and `name[i]` are assigned (got {target.text}[{target.index}], expected {target.text}[i])",
            target.offset,
        )
    parser.mark("=")
    value = parser.sum(0)
    if parser.peek is not None:
        raise GrammarError(
            f"statement goes on (got {parser.peek.text!r}, expected its end)", parser.peek.offset
        )
    return RawStatement(target, value)


def _tokens(text: str) -> list[_Token]:
    tokens = []
    at = 0
    while at < len(text) and text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            offset = at + len(text[at:]) - len(text[at:].lstrip())
            raise GrammarError(
                f"character is not in the grammar (got {text[offset]!r}, expected an operand or operator)",
                offset,
            )
        tokens.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        at = match.end()
    return tokens


class _Parser:
    """Recursive descent over the tokens of one statement; nesting is bounded, so hostile text cannot exhaust the stack."""

    def __init__(self, tokens: list[_Token], end: int) -> None:
        self._tokens = tokens
        self._end = end
        self._at = 0

    @property
    def peek(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def take(self, kind: str, expected: str) -> _Token:
        token = self.peek
        if token is None or token.kind != kind:
            got = repr(token.text) if token else "the end"
            raise GrammarError(
                f"statement is cut or misspelt (got {got}, expected {expected})",
                token.offset if token else self._end,
            )
        self._at += 1
        return token

    def mark(self, text: str) -> None:
        token = self.peek
        if token is None or token.text != text:
            got = repr(token.text) if token else "the end"
            raise GrammarError(
                f"statement is cut or misspelt (got {got}, expected {text!r})",
                token.offset if token else self._end,
            )
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
        while operator := self.operator("+", "-"):
            left = Operation(operator, left, self.product(depth))
        return left

    def product(self, depth: int) -> Raw:
        left = self.factor(depth)
        while operator := self.operator("*", "/"):
            left = Operation(operator, left, self.factor(depth))
        return left

    def factor(self, depth: int) -> Raw:
        if depth > MAX_DEPTH:
            offset = self.peek.offset if self.peek else self._end
            raise GrammarError(
                f"expression is nested too deeply (got more than {MAX_DEPTH}, expected at most {MAX_DEPTH})",
                offset,
            )
        if self.accept("-"):
            return Operation("-", None, self.factor(depth + 1))
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
        return Call(function.text, arguments, function.offset)

    def whole(self) -> Name:
        token = self.take("name", "the name of a whole field")
        return Name(token.text, None, token.offset)

    def name(self, token: _Token) -> Name:
        if token.text in FUNCTIONS or token.text == "i":
            raise GrammarError(
                f"{token.text!r} is a word of the grammar (got it as a name, expected another name)",
                token.offset,
            )
        if not self.accept("["):
            return Name(token.text, None, token.offset)
        index = self.peek
        self._at += 1
        if index is None or not (index.text == "i" or index.text.isdecimal()) or len(index.text) > 9:
            got = repr(index.text) if index else "the end"
            raise GrammarError(
                f"index is neither i nor a whole number (got {got}, expected i or 0, 1, ...)",
                index.offset if index else self._end,
            )
        self.mark("]")
        return Name(token.text, "i" if index.text == "i" else int(index.text), token.offset)
