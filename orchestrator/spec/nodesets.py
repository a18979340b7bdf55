"""Node sets: `worker[1-3]` and what it stands for.

Knows the syntax that ClusterShell and Slurm share; must not know what the names name. Groups (`@`), wildcards
and set operators are refused: they would ask a file or a cluster elsewhere what a declaration means.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

from orchestrator.spec.places import visible

MAX_NAMES = 4096
NAME = r"[a-z][a-z0-9_-]{0,62}"
_ALLOWED = re.compile(r"([A-Za-z0-9_,-]|\[[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*\])+\Z")
_NAME = re.compile(NAME + r"\Z")
_LONG = re.compile(r"\[[^\]]*[0-9]{7}")
_RANGE = re.compile(r"\[([^\[\]]*)\]")


class NodeSetError(ValueError):
    """A text that is no node set; says what is wrong, ending "(got X, expected Y)"."""


def expand(text: str) -> tuple[str, ...]:
    """Gives the names that a node set stands for, in order.

    Args:
        text: such as `coordinator`, `worker[1-3]` or `rack[1-2]n[01-04]`.

    Returns:
        At least one and at most `MAX_NAMES` names, each one a valid role name.

    Raises:
        NodeSetError: the text is no node set, stands for too many names, or for one that no role can have.
    """
    if not _ALLOWED.match(text):
        raise NodeSetError(f"(got `{visible(text)}`, expected a name or a set such as worker[1-3])")
    if _LONG.search(text) or _count(text) > MAX_NAMES:
        raise NodeSetError(f"(got `{visible(text)}`, expected at most {MAX_NAMES} names)")
    names = _folded(text) if set(text) & set("[],") else (text,)
    for name in names:
        if not _NAME.match(name):
            expected = "lower-case letters, digits, - and _, beginning with a letter"
            raise NodeSetError(f"(got `{visible(name)}`, expected {expected})")
    return names


def _count(text: str) -> int:
    """Bounds from above how many names a text can stand for, before anything is expanded."""
    total = 0
    for part in _parts(text):
        product = 1
        for match in _RANGE.finditer(part):
            product *= sum(_width(item) for item in match[1].split(","))
        total += product
    return total


def _parts(text: str) -> list[str]:
    """Splits at the commas outside of brackets."""
    return re.split(r",(?![^\[]*\])", text)


def _width(item: str) -> int:
    low, _, high = item.partition("-")
    if not (low.isdigit() and high.isdigit()):
        return 1
    return max(int(high) - int(low) + 1, 1)


def _folded(text: str) -> tuple[str, ...]:
    """Expands comma by comma and bracket by bracket, so that names stay in the order of the text."""
    names: list[str] = []
    for part in _parts(text):
        pieces = [_piece(piece) for piece in re.split(r"(\[[^\]]*\])", part)]
        names.extend("".join(chosen) for chosen in itertools.product(*pieces))
    if len(set(names)) < len(names):
        raise NodeSetError(f"(got a name twice in `{visible(text)}`, expected each once)")
    return tuple(names)


def _piece(text: str) -> list[str]:
    """Gives what stands for a part of a name: itself, or each number of its brackets, with their zeros."""
    if not text.startswith("["):
        return [text]
    # imported here: most files name roles one by one, and ClusterShell takes a while to load
    from ClusterShell.RangeSet import RangeSet, RangeSetException

    try:
        return [number for item in text.strip("[]").split(",") for number in RangeSet(item).striter()]
    except RangeSetException as error:
        raise NodeSetError(f"(got `{visible(text)}`, expected ranges such as [1-3])") from error


def assign(keys: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Gives for each name the first key whose set holds it."""
    chosen: dict[str, str] = {}
    for key, names in keys.items():
        for name in names:
            chosen.setdefault(name, key)
    return chosen
