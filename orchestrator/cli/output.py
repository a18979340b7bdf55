"""What commands print: one JSON object, tables, colour on a terminal. Knows no stage.

Standard output is for results, standard error for progress and complaints. No secret of this machine's
environment is in what either gets.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

from orchestrator.redact import Secrets

_COLOURS = {"pass": "32", "fail": "31", "unknown": "33", "not-applicable": "2", "dim": "2", "bold": "1"}


_secrets = Secrets()


class OutputError(OSError):
    """Standard output cannot be written: no room, no device."""


def print_json(value: dict[str, Any]) -> None:
    """Print one object, and nothing else, to standard output."""
    say(json.dumps(value, indent=2, ensure_ascii=False))


def withhold(names: Iterable[str] = ()) -> None:
    """Keep the secrets of this process's environment out of all that is printed from now on.

    Args:
        names: variables that are secret whatever they are called.
    """
    global _secrets  # noqa: PLW0603 - as much one for the process as its two streams are
    _secrets = Secrets.here(names)


def withheld(text: str) -> str:
    """Give a text as it may be shown, or kept in a log."""
    return _secrets.text(text)


def say(text: str = "", *, now: bool = False) -> None:
    """Print a line of a result; `now` where somebody waits for each line."""
    try:
        print(withheld(text), flush=now)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.errno, error.strerror) from error


def complain(text: str, end: str = "\n") -> None:
    """Print progress or a complaint; where nobody can be told, nothing fails for it."""
    try:
        print(withheld(text), file=sys.stderr, end=end, flush=True)
    except OSError:
        silence(sys.stderr)


def open_streams() -> None:
    """Give both streams a place to go, even where the shell closed them, and an answer to any character."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open until the end
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open until the end
    for stream in (sys.stdout, sys.stderr):
        # A place in a user's file may hold any character; no terminal's encoding may turn that into a crash.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # both are text files here


def silence(stream: TextIO) -> None:
    """Let what a stream still holds, and Python would flush at exit, go nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)


def is_terminal(stream: TextIO) -> bool:
    """Say whether a person is looking: a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def paint(text: str, style: str) -> str:
    """Colour a text of standard output by what it says (a verdict, `dim`, `bold`), on a terminal only."""
    code = _COLOURS.get(style)
    if code is None or not is_terminal(sys.stdout) or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{code}m{text}\x1b[0m"


def columns() -> int:
    """Give how wide a line of standard output may be: the terminal's width, and off a terminal any."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else sys.maxsize


def counted(count: int, thing: str) -> str:
    """Give a number of things: `1 update`, `2 updates`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def plain(value: object) -> str:
    """Give a value as text that moves no cursor and changes no colour: a bundle's text is a stranger's."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in str(value)
    )


def table(
    headers: Sequence[str], rows: Iterable[Sequence[object]], *, indent: str = "", width: int = sys.maxsize
) -> str:
    """Lay out rows in aligned columns, headers first; a cell that is a verdict is coloured.

    Args:
        headers: one per column; all empty leaves the line out.
        rows: cells, turned to `plain` text; numbers are aligned to the right.
        indent: before every line.
        width: where lines end, cut if they have to be; only for what is said in full elsewhere.

    Returns:
        Lines without a newline at the end.
    """
    rows = [tuple(row) for row in rows]
    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(headers), *cells]) for i in range(len(headers))]
    right = [all(isinstance(row[i], int | float) for row in rows) and bool(rows) for i in range(len(headers))]
    lines = [_line(headers, widths, right, width, "bold")] if any(headers) else []
    lines += [_line(line, widths, right, width) for line in cells]
    return "\n".join(indent + line for line in lines)


def _line(
    cells: Sequence[str], widths: Sequence[int], right: Sequence[bool], room: int, style: str | None = None
) -> str:
    padded = []
    for i, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        space = " " * (width - len(cell)) if right[i] or i < len(cells) - 1 else ""
        whole = space + cell if right[i] else cell + space
        if len(whole) <= room:
            painted = paint(cell, style or cell)
            padded.append(space + painted if right[i] else painted + space)
        else:
            padded.append(whole[: max(room, 0)])
        room -= len(whole) + 2
    return "  ".join(padded).rstrip()


def size_text(count: int) -> str:
    """Give a number of bytes as a person reads it: `12,345 B`, `3.4 MiB`."""
    if count < 1 << 20:
        return f"{count:,} B"
    return f"{count / (1 << 20):.1f} MiB" if count < 1 << 30 else f"{count / (1 << 30):.1f} GiB"
