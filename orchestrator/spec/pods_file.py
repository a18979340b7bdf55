"""Changes `pods.yaml` for a person, who may have written in it too: comments, order and style stay.

Knows the notation and how a file is replaced whole; must not know how nodes are reached. A file that is there
and refused stays as it is.
"""

from __future__ import annotations

import copy
import fcntl
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from evidence.files import write_whole
from orchestrator.errors import Label, Refusal, RefusedError, Where
from orchestrator.spec.places import visible
from orchestrator.spec.pods import PodsSpec
from orchestrator.spec.read import read_pods

KIND: Final = "pods/v1"
MODE: Final = 0o600
_WIDTH: Final = 4096
_PLAIN = re.compile(r"[A-Za-z_~/][A-Za-z0-9@._/~+-]*|[0-9.]+ [A-Z]{3}(/h)?")
_AFTER: Final = 2  # where ruamel keeps the comment that follows a key's value


Entry = Mapping[str, Any]
Rental = Mapping[str, str]


def add_node(path: Path, name: str, entry: Entry, rental: Rental | None = None) -> PodsSpec:
    """Adds a node at the end, and makes the file if it is not there.

    Args:
        path: the file.
        name: of the node.
        entry: what stands under the name, in order.
        rental: `started` and `cap`; a key that the file has is changed, others are added.

    Returns:
        The rental as it is now.

    Raises:
        RefusedError: the file that is there is refused, or what would come of it; nothing was changed.
    """
    return _change(path, lambda pods: _add(path, pods, name, entry, rental or {}))


def check_node(path: Path, name: str, entry: Entry, rental: Rental | None = None) -> PodsSpec:
    """Gives what `add_node` would make of the file, which stays as it is; raises what that would raise."""
    return _change(path, lambda pods: _add(path, pods, name, entry, rental or {}), write=False)


def _add(path: Path, pods: CommentedMap, name: str, entry: Entry, rental: Rental) -> None:
    if name in pods["nodes"]:
        message = f"the node is there already (got `{visible(name)}` again, expected another name)"
        hint = (
            f"`orch pods pin {visible(name)}` accepts it as it is now; another rental has a file of its own"
        )
        raise RefusedError([Refusal(Label.NAME_DUPLICATE, message, Where(str(path)), f"nodes.{name}", hint)])
    _put(pods["nodes"], name, entry)
    if rental:
        _put(pods, "rental", rental, after="orch")
    pods["transport"] = _transport(pods)


def change_node(path: Path, name: str, changes: Mapping[str, Any]) -> PodsSpec:
    """Changes keys of a node; of `cards` those stay that are named.

    Raises:
        RefusedError: the file is refused, or what would come of it; nothing was changed.
    """

    def change(pods: CommentedMap) -> None:
        before = pods["nodes"][name].get("cards") or {}
        for gone in [card for card in before if card not in changes.get("cards", before)]:
            del before[gone]
        _put(pods["nodes"], name, changes)

    return _change(path, change)


def _transport(pods: Mapping[str, Any]) -> str:
    """Gives what joins these nodes: what the file says, unless that is for one node and there are more."""
    said, nodes = str(pods["transport"]), pods["nodes"]
    if said != "loopback" or len(nodes) == 1:
        return said
    return "direct" if all(node.get("address") for node in nodes.values()) else "ssh-tunnel"


def _change(path: Path, change: Callable[[CommentedMap], None], *, write: bool = True) -> PodsSpec:
    if path.suffix.lower() == ".toml":
        message = "is changed by hand alone (got a TOML file, expected YAML)"
        raise RefusedError(
            [Refusal(Label.KIND_UNKNOWN, message, Where(str(path)), hint="name another --pods")]
        )
    try:
        target = path.resolve()  # a link stays one
        with _alone(target.parent):
            text = _changed(path, target, change)
            spec = _checked(path, text)
            if write:
                write_whole(target, text.encode(), MODE)
            return spec
    except OSError as error:
        got = error.strerror or type(error).__name__
        message = f"cannot be written (got {got}, expected a file that can be replaced)"
        raise RefusedError([Refusal(Label.WRITE_FAILED, message, Where(str(path)))]) from error


def _changed(path: Path, target: Path, change: Callable[[CommentedMap], None]) -> str:
    """Gives the text that the file would have."""
    yaml = _yaml()
    if target.exists():
        read_pods(path)
        pods = yaml.load(target.read_text(encoding="utf-8-sig"))
    else:
        pods = CommentedMap(orch=KIND, transport="loopback", nodes=CommentedMap())
    change(pods)
    text = io.StringIO()
    yaml.dump(pods, text)
    return text.getvalue()


def _checked(path: Path, text: str) -> PodsSpec:
    """Reads a text as the file that it is to become; refusals name that file."""
    with tempfile.TemporaryDirectory(prefix="orch-pods-") as folder:
        draft = Path(folder) / "pods.yaml"
        draft.write_text(text, encoding="utf-8")
        try:
            return replace(read_pods(draft), path=path)
        except RefusedError as error:
            raise RefusedError(replace(each, where=Where(str(path))) for each in error.refusals) from None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keeps other commands of ours from changing a file of the folder between our look and our change."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _yaml() -> YAML:
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = _WIDTH
    return yaml


def _put(mapping: CommentedMap, key: str, value: Any, *, after: str | None = None) -> None:
    """Puts a value under a key: in its place, else behind another key, or last; into a mapping, key by key.

    A comment above what follows stays above that: ruamel has it at the end of what comes before.
    """
    if key in mapping and isinstance(value, Mapping) and isinstance(mapping[key], CommentedMap):
        for inner, each in value.items():
            _put(mapping[key], inner, each)
        return
    if key in mapping:
        mapping[key] = _styled(value)
        return
    last = after if after in mapping else next(reversed(mapping), None)
    mapping.insert(list(mapping).index(last) + 1 if last is not None else 0, key, _styled(value))
    if last is not None:
        _move_comment(mapping, last, key)


def _move_comment(mapping: CommentedMap, source: str, target: str) -> None:
    """Moves the lines after the last line of one key's value to the end of another's value."""
    holder, key = _last_leaf(mapping, source)
    tokens = holder.ca.items.get(key)
    token = tokens[_AFTER] if tokens and len(tokens) > _AFTER else None
    if token is None:
        return
    own, newline, rest = token.value.partition("\n")
    if not rest:
        return
    holder, key = _last_leaf(mapping, target)
    moved = copy.copy(token)
    moved.value = "\n" + rest
    holder.ca.items[key] = [None, None, moved, None]
    token.value = own + newline
    if not own.strip():
        tokens[_AFTER] = None


def _last_leaf(mapping: CommentedMap, key: str) -> tuple[CommentedMap, str]:
    """Gives where ruamel keeps what follows a value: at the last key of the innermost block."""
    value = mapping[key]
    while isinstance(value, CommentedMap) and value and not value.fa.flow_style():
        mapping, key = value, next(reversed(value))
        value = mapping[key]
    return mapping, key


def _styled(value: Any) -> Any:
    """Gives a value as it is to stand in the file: text in quotes unless it is plain to everybody."""
    if isinstance(value, Mapping):
        return CommentedMap({key: _styled(each) for key, each in value.items()})
    if isinstance(value, str) and not _PLAIN.fullmatch(value):
        return DoubleQuotedScalarString(value)
    return value
