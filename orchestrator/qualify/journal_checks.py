"""What the journal says of a step, held against the files that the step left.

Pure. A launch counts only if the journal has it once, whole, inside the attempt that was finished: begun, its
roles' processes, its end with the very exit codes that lie in the files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from evidence.event import Event
from orchestrator.qualify.bundle_files import specs_sha256
from orchestrator.qualify.checks import Check, equal
from orchestrator.qualify.launched import Launched
from orchestrator.qualify.transfers import Transfers, differing, transfers, unheard
from orchestrator.qualify.view import View

STREAM = "stream.jsonl"
CLOCK_S = 2.0  # a wall clock may be set a little meanwhile, and drift


def journal(view: View, step: str) -> Check:
    """The step's finished attempt in the journal, and its launches there and in the files."""
    fine = "the finished attempt and its launches as the files have them"
    problems = list(_attempt(view, step))
    folder = view.attempt(step)
    names = _launches(view, folder) if folder else ()
    about = [event for event in view.events() if event.data.get("step") == step and "launch" in event.data]
    number = int(folder.rpartition("/")[2]) if folder else 0
    said = [event for event in about if event.data.get("attempt") == number]
    problems += [
        f"{name} is not in the files"
        for name in sorted({str(event.data["launch"]) for event in said}.difference(names))
    ]
    moved = transfers(view.events())
    problems += unheard(view, step, folder, moved) if folder else ()
    for name in names:
        launched = view.launch(step, name)
        if launched is not None:
            problems += _launch(launched, [event for event in said if event.data["launch"] == name], moved)
    got = "; ".join(problems) or fine
    return equal("journal", (STREAM, *(f"{folder}/{name}/launch.json" for name in names)), fine, got)


def whole_run(view: View) -> Check:
    """No process is counted twice, and the lane is the one that was begun."""
    fine = "a process of its own for every role of every launch, and its own publications"
    events, problems = view.events(), []
    started = [event for event in events if event.type == "orch.job.started"]
    # nodes may be containers of one host: each counts its own processes, under one boot id
    placement = view.wiring.placement
    processes = Counter(
        (*(event.data[key] for key in ("pid", "start_ticks", "boot_id")), placement.get(event.data["role"]))
        for event in started
    )
    problems += [
        f"process {pid} stands for several roles" for (pid, *_), count in processes.items() if count > 1
    ]
    problems += _stops(events)
    problems += _left_out(view)
    problems += _connections(view)
    problems += _copies(view)
    if events[0].type != "orch.lane.started" or events[0].data.get("lane") != view.lane.name:
        problems.append("another lane was begun")
    if specs_sha256(view.bundle) != events[0].data.get("specs_sha256"):
        problems.append("other specs were declared when it was begun")
    return equal("whole-run", (STREAM,), fine, "; ".join(problems) or fine)


def _stops(events: tuple[Event, ...]) -> Iterator[str]:
    """A stop that ended no step: an honest one is the reason of the step that it ended."""
    ended = {
        event.data["reason"]
        for event in events
        if event.type == "orch.attempt.failed" and event.data["final"]
    }
    for event in events:
        if event.type == "orch.lane.stopped" and event.data["reason"] not in ended:
            yield f"the lane was stopped ({event.data['reason']}), and no step with it"


def _left_out(view: View) -> Iterator[str]:
    """A step that ran and that the lane leaves out: it was left out afterwards, whatever it showed."""
    begun = {event.data["step"] for event in view.events() if event.type == "orch.step.started"}
    for step in sorted(begun.intersection(view.lane.omit)):
        yield f"{step} was begun, and the lane leaves it out"


def _connections(view: View) -> Iterator[str]:
    """Every node of a rental was reached, and never with another host key than the pinned one."""
    if view.pods is None:
        return
    seen: dict[str, set[str]] = {}
    for event in view.events():
        if event.type == "orch.remote.connected":
            seen.setdefault(event.data["node"], set()).add(event.data["host_key"])
    for name in view.pods.used:
        pinned, keys = view.pods.nodes[name]["host_key"], seen.get(name, set())
        if len(keys) != 1 or (pinned is not None and keys != {pinned}):
            yield f"node {name} was reached with host keys {', '.join(sorted(keys)) or 'none'}"


def _copies(view: View) -> Iterator[str]:
    """One publication in two launches: a manifest bears its own time, so no two are the same."""
    seen: dict[str, str] = {}
    if view.command is not None:
        return  # what such a program publishes bears no time, and two runs of it publish the same
    root = view.roles[0]
    for path in sorted(view.bundle.glob(f"steps/*/*/*/{root}/checkpoint/*.manifest.json")):
        name = path.relative_to(view.bundle).as_posix()
        first = seen.setdefault(view.digest(name), name)
        if first != name:
            yield f"{name} is {first}"


def _attempt(view: View, step: str) -> Iterator[str]:
    """Begun, then finished, once, and nothing after that."""
    kinds = ("orch.step.started", "orch.step.finished", "orch.attempt.failed")
    about = [event for event in view.events() if event.type in kinds and event.data.get("step") == step]
    finished = [event for event in about if event.type == "orch.step.finished"]
    if len(finished) != 1 or about[-1] is not finished[0]:
        yield f"{step} is finished {len(finished)} times, and {about[-1].type} comes last"
    elif len(about) < 2 or about[-2].type != "orch.step.started":  # noqa: PLR2004  # begun and finished
        yield f"{step} is finished and was not begun"
    elif about[-2].data["attempt"] != finished[0].data["attempt"]:
        yield f"attempt {finished[0].data['attempt']} of {step} is finished and was not begun"


def _launches(view: View, folder: str) -> tuple[str, ...]:
    path = view.bundle / folder
    found = (
        [entry.name for entry in path.iterdir() if (entry / "launch.json").is_file()] if path.is_dir() else []
    )
    return tuple(sorted(found))


def _launch(launched: Launched, about: list[Event], moved: Transfers) -> Iterator[str]:
    """One launch: its events in order, its processes, exit codes and files, its checkpoints' times."""
    name = launched.launch.name
    started = [event for event in about if event.type == "orch.launch.started"]
    finished = [event for event in about if event.type == "orch.launch.finished"]
    if len(started) != 1 or len(finished) != 1 or about[0] is not started[0] or about[-1] is not finished[0]:
        yield f"{name} is begun {len(started)} times and ended {len(finished)} times"
        return
    roles = sorted(event.data["role"] for event in about if event.type == "orch.job.started")
    if roles != sorted(launched.roles):
        yield f"{name} has processes of {', '.join(roles) or 'nobody'}"
    exits = {
        role: "none" if record.exit is None else str(record.exit) for role, record in launched.roles.items()
    }
    if finished[0].data["exits"] != exits or finished[0].data["reason"]:
        yield f"{name} ended otherwise in the journal than in the files"
    if launched.view.command is None:
        yield from differing(launched, started[0].data["jobs"], moved)
    yield from _times(launched, _seconds(started[0]) - CLOCK_S, _seconds(finished[0]) + CLOCK_S)


def _times(launched: Launched, begin: float, end: float) -> Iterator[str]:
    if launched.view.command is not None:
        return
    nodes = (launched.view.json("binding.json") or {}).get("nodes", {})
    for role, record in launched.roles.items():
        clock = nodes[launched.view.wiring.placement[role]]
        error = clock["clock_error_ns"] / 1e9
        for name in record.checkpoint:
            if not name.removesuffix(".manifest.json").isdecimal():
                continue  # a part bears no time
            manifest = launched.view.json(launched.file(role, f"checkpoint/{name}"))
            captured = manifest["capture"]["time_ms"] / 1000 - clock["clock_offset_ns"] / 1e9
            if not begin - error <= captured <= end + error:
                yield f"{launched.launch.name}: {name} was captured {captured - begin:.0f} s after it began"


def _seconds(event: Event) -> float:
    return datetime.fromisoformat(event.time).timestamp()
