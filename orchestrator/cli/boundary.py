"""The one place where an exception becomes words and an exit code.

Knows the exceptions of `orchestrator.errors`; must not know a verb. Whatever else arrives is a bug of ours:
its traceback goes to a file, and the message names the file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from evidence.files import read_bounded
from orchestrator.cli.output import (
    OutputError,
    complain,
    is_terminal,
    open_streams,
    print_json,
    silence,
    withheld,
    withhold,
)
from orchestrator.errors import OrchError, Refusal, RefusedError

_KINDS = {1: "failed", 2: "usage", 4: "undecided"}
_MAX_SOURCE_BYTES = 1 << 20
_MOST_PRINTED = 100
EXIT_BUG = 3
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141  # what a shell reports for a program that SIGPIPE ended


def guard(run: Callable[[], int], *, command: str, as_json: bool) -> int:
    """Run a command and report whatever it raises.

    Args:
        run: gives the exit code.
        command: the program's name in messages.
        as_json: whether standard output is for one JSON object; refusals are then given there too.

    Returns:
        The exit code: that of `run`, or the one that the exception stands for.
    """
    open_streams()
    withhold()
    try:
        try:
            return _reported(run, command, as_json=as_json)
        finally:
            sys.stdout.flush()  # also before argparse leaves after its help: at exit nobody would say it
    except BrokenPipeError:
        silence(sys.stdout)  # the reader has what it wanted
        return EXIT_BROKEN_PIPE
    except OSError as error:
        silence(sys.stdout)
        complain(f"{command}: cannot write the output: {error.strerror or error}")
        return 1


def _reported(run: Callable[[], int], command: str, *, as_json: bool) -> int:
    """Run and report; raises OSError only for standard output that cannot be written."""
    try:
        return run()
    except RefusedError as error:
        _report_refusals(error.refusals, as_json=as_json)
        return error.exit_code
    except OrchError as error:
        complain(f"{command}: {error}")
        if as_json:
            print_json({"error": {"kind": _KINDS[error.exit_code], "message": str(error)}})
        return error.exit_code
    except KeyboardInterrupt:
        complain(f"{command}: interrupted")
        if as_json:
            print_json({"error": {"kind": "interrupted", "message": "interrupted"}})
        return EXIT_INTERRUPTED
    except (BrokenPipeError, OutputError):
        raise
    except Exception as error:  # noqa: BLE001 - the boundary: everything left is a bug of ours
        if isinstance(error, OSError):
            sys.stdout.flush()  # the tracker prints by itself: if that failed, this fails again
        return _report_bug(error, command, as_json=as_json)


def refusal_json(refusal: Refusal) -> dict[str, object]:
    """Give a refusal as the object that `--json` prints."""
    return {
        "label": str(refusal.label),
        "message": refusal.message,
        "path": refusal.where.path,
        "line": refusal.where.line,
        "column": refusal.where.column,
        "key": refusal.key,
        "hint": refusal.hint,
    }


def print_refusals(refusals: Sequence[Refusal]) -> None:
    """Print refusals to standard error, of very many the first; on a terminal with source line and caret."""
    from orchestrator.spec.render import render

    more = len(refusals) - _MOST_PRINTED
    refusals = refusals[:_MOST_PRINTED]
    terminal = is_terminal(sys.stderr)
    colour = terminal and not os.environ.get("NO_COLOR")
    sources = _sources({refusal.where.path for refusal in refusals}) if terminal else {}
    complain(render(refusals, sources, colour=colour, caret=terminal), end="")
    if more > 0:
        complain(f"and {more} more; --json, where a verb has it, gives all of them")


def _sources(paths: Iterable[str]) -> dict[str, str]:
    """Give the text of the files that refusals point into, as far as they can still be read."""
    sources = {}
    for path in paths:
        try:
            sources[path] = read_bounded(Path(path), _MAX_SOURCE_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
    return sources


def _report_refusals(refusals: Sequence[Refusal], *, as_json: bool) -> None:
    print_refusals(refusals)
    if as_json:
        print_json({"refusals": [refusal_json(refusal) for refusal in refusals]})


def _report_bug(error: Exception, command: str, *, as_json: bool) -> int:
    message = f"a bug of ours: {type(error).__name__}: {error}"
    complain(f"{command}: {message}\n{command}: the traceback is in {_write_log(error)}")
    if as_json:
        print_json({"error": {"kind": "bug", "message": message}})
    return EXIT_BUG


def _write_log(error: Exception) -> Path:
    """Write the traceback beside the kept programs, or to the temporary folder if that cannot be."""
    import tempfile
    import traceback

    from orchestrator.cli.arguments import cache_folder

    text = withheld("".join(traceback.format_exception(error)))
    for folder in (cache_folder(), None):
        try:
            descriptor, path = tempfile.mkstemp(".log", "orch-bug-", folder)
        except OSError:
            continue
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        return Path(path)
    complain(text)
    return Path("the lines above")
