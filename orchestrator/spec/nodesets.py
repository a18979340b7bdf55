"""Node sets: `worker[1-3]` and what it stands for.

Knows the syntax that ClusterShell and Slurm share; must not know what the names name. Groups (`@`), wildcards
and set operators are refused: they would ask a file or a cluster elsewhere what a declaration means.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

from orchestrator.spec.places import visible

MAX_NAMES = 4096
NAME = r"[a-z][a-z0-9_-]{0,62}"
_ALLOWED = re.compile(r"([A-Za-z0-9_,-]|\[[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*\])+\Z")
_NAME = re.compile(NAME + r"\Z")
_LONG = re.compile(r"\[[^\]]*[0-9]{7}")
_NUMBER = re.compile(r"[0-9]{1,6}(?![0-9])(?<![0-9]{7})")
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


def fold(names: Sequence[str]) -> str:
    """Gives names as a person writes them: `coordinator,worker[1-3]`; a name's rest may follow the number.

    Only names that follow each other are folded, so that `expand` gives role names back in their order.
    """
    runs: list[tuple[list[str], frozenset[tuple[str, str]]]] = []
    for name in names:
        around = frozenset((name[: match.start()], name[match.end() :]) for match in _NUMBER.finditer(name))
        if runs:
            members, common = runs[-1]
            if next_to := frozenset(each for each in common & around if _follows(members[-1], name, each)):
                runs[-1] = ([*members, name], next_to)
                continue
        runs.append(([name], around))
    return ",".join(_run_text(members, around) for members, around in runs)


def _follows(before: str, name: str, around: tuple[str, str]) -> bool:
    first, second = (_number(each, around) for each in (before, name))
    padded = len(first) == len(second) or not (first.startswith("0") or second.startswith("0"))
    return padded and int(second) == int(first) + 1


def _number(name: str, around: tuple[str, str]) -> str:
    return name[len(around[0]) : len(name) - len(around[1])]


def _run_text(members: Sequence[str], arounds: frozenset[tuple[str, str]]) -> str:
    if len(members) == 1:
        return members[0]
    around = min(arounds)
    return f"{around[0]}[{_number(members[0], around)}-{_number(members[-1], around)}]{around[1]}"


def assign(keys: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Gives for each name the first key whose set holds it."""
    chosen: dict[str, str] = {}
    for key, names in keys.items():
        for name in names:
            chosen.setdefault(name, key)
    return chosen
