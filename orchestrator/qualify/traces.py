"""Traces of stand-ins in a bundle, wherever they are, and of roles that ran on real cards. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evidence.canonical import CanonicalError, loads
from orchestrator.probe import STANDIN
from orchestrator.qualify import devices, looks
from orchestrator.qualify.launch import Launch, Start
from orchestrator.qualify.view import View


def stand_in_traces(view: View) -> Iterator[str]:
    """Everything in a bundle that says that a card was a stand-in, wherever it says so.

    Raises:
        ValueError, LookupError, TypeError, AttributeError, OSError: a file is not of its form.
    """
    if devices.is_simulated(view):
        yield "stream.jsonl: it was begun on stand-ins"
    if view.pinned_cards is not None and view.pinned_cards.is_simulated:
        yield "cards.json: its cards are stand-ins"
    if (view.bundle / devices.STAND_IN).exists():
        yield f"{devices.STAND_IN}: files of a stand-in"
    if view.command is None:  # a user's own program names its files as it likes
        yield from _of_journal(view)
        yield from _of_files(view)
    binding = view.json("binding.json") or {}
    for where in ("roles", "swapped"):
        for role, bound in binding.get(where, {}).items():
            if (bound.get("device") or {}).get("simulated", False) is not False:
                yield f"binding.json: {role} is bound to a stand-in"
    if devices.profiles(view):
        yield from _of_launches(view)


def _of_journal(view: View) -> Iterator[str]:
    """A stand-in's files were put, asked or fetched."""
    files = rf"/(?:{devices.CARDS.rpartition('/')[2]}|nvidia-smi|proc/.+|lib[^/]+)|-calls"
    place = re.compile(rf".*/{re.escape(view.run_id)}/(?:.+/)?{devices.STAND_IN}(?:{files})?")
    for event in view.events():
        if event.type.startswith("orch.remote."):
            said = (event.data.get("path", ""), *event.data.get("argv", ()))
            if any(place.fullmatch(str(each)) for each in said):
                yield f"stream.jsonl: {event.type} was about a stand-in's files"
                return


def _of_launches(view: View) -> Iterator[str]:
    for name, start in _device_starts(view):
        device = start.bound.device
        if device is not None and device.is_simulated:
            yield f"{name}/launch.json: {start.role} was bound to a stand-in"
        if any(file.name.startswith(devices.STAND_IN) for file in start.files):
            yield f"{name}/launch.json: a stand-in's files lay beside {start.role}"
        if (said := _said(view, name, start.role)) and said.get("simulated") is not False:
            yield f"{name}/{start.role}/stdout: it ran on a stand-in"


def _of_files(view: View) -> Iterator[str]:
    """What a stand-in said or wrote, whatever the bundle's specs say of devices by now."""
    for path in sorted(view.bundle.glob(f"steps/*/*/*/*/{devices.CALLS}")):
        yield f"{path.relative_to(view.bundle).as_posix()}: a stand-in counted its calls"
    for path in sorted(view.bundle.glob(f"steps/*/*/{looks.FOLDER}/*/*")):
        name = path.relative_to(view.bundle).as_posix()
        if STANDIN.encode() in (view.bytes(name) or b""):
            yield f"{name}: a stand-in answered"


def ran_on_its_card(view: View) -> bool:
    """Whether a device role ended well somewhere, and said that it was on the very card of its binding."""
    if not devices.profiles(view):
        return False
    for name, start in _device_starts(view):
        said, device = _said(view, name, start.role), start.bound.device
        if device is not None and said and said.get("simulated") is False:
            return device.uuid is None or device.uuid == said.get("uuid")
    return False


def _device_starts(view: View) -> Iterator[tuple[str, Start]]:
    for path in sorted(view.bundle.glob("steps/*/*/*/launch.json")):
        name = path.parent.relative_to(view.bundle).as_posix()
        for start in Launch.read(path.parent).starts:
            if start.bound.device is not None:
                yield name, start


def _said(view: View, launch: str, role: str) -> dict[str, object]:
    """What a device role said of its card on standard output; nothing where it did not get so far."""
    try:
        line = loads(view.bytes(f"{launch}/{role}/stdout") or b"null")
    except CanonicalError:
        return {}
    device = line.get("device") if isinstance(line, dict) else None
    return device if isinstance(device, dict) else {}
