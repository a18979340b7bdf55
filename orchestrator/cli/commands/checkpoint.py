"""`orch checkpoint`: show, verify, compare or take out what a run published."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.cli import checkpoint_text as text
from orchestrator.cli.arguments import add_json
from orchestrator.cli.boundary import print_refusals, refusal_json
from orchestrator.cli.output import complain, plain, print_json, say, size_text
from orchestrator.cli.project import find_bundle
from orchestrator.errors import Label, OrchError, Refusal, RefusedError, UndecidedError, UsageError, Where

if TYPE_CHECKING:
    from orchestrator.qualify.readings import Reading
    from orchestrator.qualify.sets import OwnSet, Place, Set

_PLACE = "BUNDLE:checkpoint@N (a path, a name or `last`), a bundle, or a folder that holds a set"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the four actions."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="what a checkpoint says; of a bundle, which it has")
    verify = actions.add_parser("verify", help="check every digest and that every word is there once")
    diff = actions.add_parser("diff", help="whether two hold the same words, and which differ")
    export = actions.add_parser("export", help="write one whole file of it")
    for action in (show, verify, diff, export):
        action.add_argument("place", metavar="PLACE", help=_PLACE)
        add_json(action)
    diff.add_argument("other", metavar="PLACE", help="the one it is compared with")
    export.add_argument("file", metavar="FILE", type=Path, help="NAME.safetensors or NAME.npz; not there yet")


def run(args: argparse.Namespace) -> int:
    """Do one of the four."""
    actions = {"show": _show, "verify": _verify, "diff": _diff, "export": _export}
    return actions[args.action](args)


def _place(named: str) -> tuple[Place, tuple[Set | OwnSet, ...]]:
    """Give the place, and those of its checkpoints that are meant."""
    from orchestrator.qualify.sets import place_of, split_name

    try:
        folder, version = split_name(named)
    except ValueError:
        raise UsageError(f"no checkpoint is named so (got {named}, expected PLACE:checkpoint@N)") from None
    place = place_of(find_bundle(folder))
    return place, place.sets if version is None else place.chosen(version)


def _one(named: str) -> Set | OwnSet:
    """Give the one checkpoint that is meant."""
    _, sets = _place(named)
    if len(sets) != 1:
        versions = sorted({each.version for each in sets if each.version is not None})
        example = f", for example {named}:checkpoint@{versions[-1]}" if versions else ""
        raise UsageError(f"{named} holds {len(sets)} checkpoints; name one{example}")
    return sets[0]


def _show(args: argparse.Namespace) -> int:
    from orchestrator.qualify.readings import outline_of, reading
    from orchestrator.qualify.sets import OwnSet

    _, sets = _place(args.place)
    if len(sets) != 1:
        return _list(args, sets)
    if isinstance(sets[0], OwnSet):
        read = reading(sets[0])
        faults, about = read.faults, text.own_json(sets[0], read.tensors)
    else:
        outline, faults = outline_of(sets[0])
        about = text.set_json(sets[0].name, outline)
    if args.json:
        print_json({"place": args.place, **about, "faults": [refusal_json(each) for each in faults]})
    else:
        say(text.shown(about))
    print_refusals(faults)
    return 1 if faults else 0


def _list(args: argparse.Namespace, sets: Sequence[Set | OwnSet]) -> int:
    rows, faults = text.listed(sets)
    if args.json:
        checkpoints = {"checkpoints": rows, "faults": [refusal_json(each) for each in faults]}
        print_json({"place": args.place, **checkpoints})
    else:
        say(text.list_table(rows) if rows else "no checkpoint has been published")
    print_refusals(faults)
    return 1 if faults else 0


def _verify(args: argparse.Namespace) -> int:
    from orchestrator.qualify.readings import reading

    place, sets = _place(args.place)
    if not sets:
        raise RefusedError([_nothing(place)])
    checked: list[dict[str, Any]] = []
    faults: list[Refusal] = []
    undecided: list[str] = []
    for each in sets:
        read = reading(each)
        state = read.outline.manifest.state if read.outline else None
        checked.append({"name": each.name, "version": each.version, "state": state, "sound": not read.faults})
        faults += read.faults
        if not read.faults and not read.is_decided:
            undecided.append(f"{each.name}: the set does not tell the order of its fields")
    if args.json:
        said = [refusal_json(each) for each in faults]
        sound = not faults and not undecided
        print_json({"place": args.place, "sound": sound, "checkpoints": checked, "faults": said})
    elif not faults and not undecided:
        for row in checked:
            say(f"sound: version {row['version']} of {plain(row['name'])}")
    print_refusals(faults)
    for sentence in undecided:
        complain(f"{plain(sentence)}, so its `state` digest is not recomputed; a bundle's specs tell it")
    return 1 if faults else 4 if undecided else 0


def _nothing(place: Place) -> Refusal:
    message = "no checkpoint has been published (got none, expected one or more)"
    return Refusal(Label.CHECKPOINT_MISSING, message, Where(str(place.folder)))


def _sound(named: str) -> tuple[Set | OwnSet, Reading]:
    """Give a checkpoint in which nothing is wrong.

    Raises:
        RefusedError: something is.
        UndecidedError: not all that is in it can be checked.
    """
    from orchestrator.qualify.readings import reading

    found = _one(named)
    read = reading(found)
    if read.faults:
        raise RefusedError(read.faults)
    if not read.is_decided:
        raise UndecidedError(f"{named} does not tell the order of its fields; name it in its bundle")
    return found, read


def _diff(args: argparse.Namespace) -> int:
    from orchestrator.qualify.compare import differences

    sides = [_sound(named) for named in (args.place, args.other)]
    (left, one), (right, other) = sides
    found = differences(one.tensors, other.tensors)
    apart = text.apart(*(text.facts(name, read) for name, read in sides))
    if args.json:
        names = {"left": f"{args.place} ({left.name})", "right": f"{args.other} ({right.name})"}
        fields = [text.difference_json(each) for each in found]
        print_json({**names, "equal": not found, "fields": fields, "apart": apart})
    else:
        say(text.compared(found))
        for name, (before, after) in apart.items():
            say(f"apart from the words: {name} is {plain(before)}, and {plain(after)}")
    return 1 if found else 0


def _export(args: argparse.Namespace) -> int:
    from orchestrator.qualify.export import FORMATS, FormatError

    if args.file.suffix not in FORMATS:
        raise UsageError(f"no format is named so (got {args.file}, expected {' or '.join(FORMATS)})")
    found, read = _sound(args.place)
    metadata = {key: str(value) for key, value in text.facts(found, read).items() if value is not None}
    try:
        data = FORMATS[args.file.suffix](read.tensors, metadata)
    except FormatError as error:
        raise OrchError(f"{args.file}: {error}") from error
    _write_new(args.file, data)
    if args.json:
        print_json({"place": args.place, "file": str(args.file), "size": len(data), **metadata})
    else:
        say(f"{args.file}: {len(read.tensors)} tensors, {size_text(len(data))}")
    return 0


def _write_new(path: Path, data: bytes) -> None:
    """Write a file that is not there yet: a bundle's own files, above all, stay what was sealed."""
    from evidence.files import write_whole

    if path.exists() or path.is_symlink():
        raise UsageError(f"{path} is there already; name a file that is not")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)
    except OSError as error:
        message = f"cannot be written (got {error.strerror}, expected a folder with room)"
        raise RefusedError([Refusal(Label.WRITE_FAILED, message, Where(str(path)))]) from error
