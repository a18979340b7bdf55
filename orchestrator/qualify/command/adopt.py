"""Checkpoints of a program of the user's own that another run of it may go on from."""

from __future__ import annotations

from orchestrator.qualify.command import state
from orchestrator.qualify.launch import OWN
from orchestrator.qualify.launched import Launched
from orchestrator.qualify.view import View


def collected(view: View, *steps: str) -> dict[int, str]:
    """Version -> a launch's folder in which every role has a whole state of that version, of any attempt.

    Args:
        view: the bundle, finished or not.
        steps: whose launches count.
    """
    found: dict[int, str] = {}
    for event in view.events():
        if event.type != "orch.launch.finished" or event.data["step"] not in steps:
            continue
        launched = Launched(view, "steps/{step}/{attempt}/{launch}".format_map(event.data))
        if _is_whole(launched):
            found[launched.launch.starts[0].called.target] = launched.name
    return dict(sorted(found.items()))


def _is_whole(launched: Launched) -> bool:
    """Whether the program itself, and no reference, ended well in every role and published its state."""
    if tuple(launched.roles) != launched.view.roles:
        return False
    states = [state.published(launched.view, launched.name, role) for role in launched.roles]
    return (
        all(start.program == OWN for start in launched.launch.starts)
        and all(record.exit == 0 for record in launched.roles.values())
        and all(each is not None and not each.fault() for each in states)
    )
