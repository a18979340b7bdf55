"""Refusals as text for a person: one line each, and on a terminal the source line with a caret under it.

Knows text alone: reads no file and asks no terminal; the caller says what it wants.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

from orchestrator.errors import Refusal, Where

_BOLD, _RED, _DIM, _OFF = "\x1b[1m", "\x1b[31m", "\x1b[2m", "\x1b[0m"
_WIDTH = 100


def render(refusals: Iterable[Refusal], sources: Mapping[str, str], *, colour: bool, caret: bool) -> str:
    """Gives the refusals as text, each ending with a newline.

    Args:
        refusals: in the order to be shown.
        sources: text of the files by path as `Where` names it; a file that is missing here has no caret.
        colour: whether to use ANSI colours.
        caret: whether to add the source line, a caret under the place, and the hint on a line of its own.
            Without it each refusal is exactly one line.
    """
    return "".join(
        _with_caret(refusal, sources, colour=colour) if caret else _line(refusal, colour=colour)
        for refusal in refusals
    )


def _line(refusal: Refusal, *, colour: bool) -> str:
    hint = f"; {refusal.hint}" if refusal.hint else ""
    return f"{_head(refusal, colour=colour)}{_safe(hint)}\n"


def _head(refusal: Refusal, *, colour: bool) -> str:
    where, label = _safe(str(refusal.where)), str(refusal.label)
    if colour:
        where, label = f"{_BOLD}{where}{_OFF}", f"{_BOLD}{_RED}{label}{_OFF}"
    return f"{where}: {label}: {_safe(refusal.message)}"


def _with_caret(refusal: Refusal, sources: Mapping[str, str], *, colour: bool) -> str:
    lines = [
        _head(refusal, colour=colour),
        *_excerpt(refusal.where, sources.get(refusal.where.path), colour=colour),
    ]
    if refusal.hint:
        lines.append(f"  {_safe(refusal.hint)}")
    return "\n".join(lines) + "\n"


def _excerpt(where: Where, source: str | None, *, colour: bool) -> list[str]:
    """Gives the source line and the caret line; nothing for a place that is no line of the source."""
    lines = (source or "").removeprefix("\ufeff").split("\n")
    if not 1 <= where.line <= len(lines) or (source or "") == "":
        return []
    line, column = lines[where.line - 1].removesuffix("\r"), where.column - 1
    start = max(0, column - _WIDTH // 2) if len(line) > _WIDTH else 0
    shown = line[start : start + _WIDTH]
    number = f"{where.line:>5} | "
    # a tab stays a tab before the caret too, so that both lines move alike whatever a tab is wide
    before = "".join(
        "\t" if character == "\t" else " " * _cells(character) for character in line[start:column]
    )
    caret = f"{_RED}^{_OFF}" if colour else "^"
    if colour:
        number = f"{_DIM}{number}{_OFF}"
    return [f"{number}{_safe(shown, keep_tabs=True)}", f"{' ' * 5} | {before}{caret}"]


def _cells(character: str) -> int:
    """Gives how many columns of a terminal a character takes."""
    if not character.isprintable():
        return len(_safe(character))
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _safe(text: str, *, keep_tabs: bool = False) -> str:
    """Escapes what could move a terminal's cursor or change its colours."""
    return "".join(
        character
        if character.isprintable() or (keep_tabs and character == "\t")
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
