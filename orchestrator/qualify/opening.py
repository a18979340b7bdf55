"""A run's bundle, opened: made anew from a lane and a pods file, or taken up where it was left.

Reads and refuses; reaches no node. What it gives is held by this controller alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evidence.canonical import dumps
from evidence.digest import sha256_bytes
from orchestrator.errors import Label, Refusal, RefusedError, UsageError, Where
from orchestrator.plan.command import CommandPlan
from orchestrator.plan.derive import derive, plan_of
from orchestrator.plan.model import Plan
from orchestrator.qualify import bundles, cards, pins
from orchestrator.qualify import parent as parents
from orchestrator.qualify.adopt import adopt
from orchestrator.qualify.device_places import place_devices
from orchestrator.qualify.options import RunOptions
from orchestrator.qualify.pins import Pinned
from orchestrator.qualify.placement import refusals
from orchestrator.qualify.steps import build
from orchestrator.qualify.view import LOCAL, SIMULATED, View
from orchestrator.remote.root import own_root
from orchestrator.spec.lane import LaneSpec
from orchestrator.spec.pods import Placement, PodsSpec
from orchestrator.spec.program import CommandRunSpec
from orchestrator.spec.read import files, read_lane, read_pods


@dataclass(frozen=True)
class Opening:
    """A bundle held by this controller, and the rental that it runs on; None is this machine."""

    opened: bundles.Opened
    pods: PodsSpec | None


def open_run(options: RunOptions) -> Opening:
    """Makes a bundle, or takes one up.

    Raises:
        RefusedError: the lane, its plan, its place or the bundle is refused; nothing was begun.
    """
    if options.resume is not None:
        return _reopen(options, options.resume)
    if options.lane is None:
        raise UsageError("a lane file or --resume is needed")
    lane = read_lane(options.lane)
    if found := options.secrets.refusals(files(options.lane)):
        raise RefusedError(found)
    plan = plan_of(lane.run)
    first: dict[str, object] = {
        "content_sha256": options.content.digest,
        "keep": options.keep,
        "owner": options.owner,
    }
    beside: dict[str, bytes] = {}
    if options.origin is not None:
        beside = adopt(lane, *options.origin)
        first["parent_sha256"] = sha256_bytes(beside[f"{parents.FOLDER}/{parents.FILE}"])
    if options.pods is None or str(options.pods) == SIMULATED:
        here = {**first, "pods": SIMULATED if options.pods else LOCAL, "remote_root": _remote_root()}
        if bound := cards_of(lane, options):
            beside |= bound
            here["cards_sha256"] = sha256_bytes(bound[cards.FILE])
        return Opening(bundles.create(options.bundles, lane, plan, here, beside), None)
    pods, pinned = _rental(options.pods, lane, plan, options)
    data = dumps(pinned.as_json())
    there = {**first, "pods": str(options.pods), "pods_sha256": sha256_bytes(data), "remote_root": ""}
    beside[pins.FILE] = data
    return Opening(bundles.create(options.bundles, lane, plan, there, beside), pods)


def _rental(
    path: Path, lane: LaneSpec, plan: Plan | CommandPlan, options: RunOptions
) -> tuple[PodsSpec, Pinned]:
    """Reads a pods file for a lane; raises RefusedError with all that is wrong with it for that lane."""
    pods = read_pods(path)
    roles = tuple(role if isinstance(role, str) else role.name for role in plan.roles)
    found = [*options.secrets.refusals((path,)), *refusals(roles, pods)]
    placed: Mapping[str, Placement] = {}
    if not found:
        placed, lacking = place_devices(roles, pods, lane)
        found += lacking
    spend, cap = lane.limits.spend, pods.cap
    if spend is not None and cap is not None and spend.currency != cap.currency:
        message = f"the lane's limit is in another currency (got {spend.currency}, expected {cap.currency})"
        found.append(lane.document.at(Label.VALUE_CHOICE, message, ("limits", "spend")))
    if found:
        raise RefusedError(found)
    return pods, Pinned.of(pods, placed)


def cards_of(lane: LaneSpec, options: RunOptions) -> dict[str, bytes]:
    """The cards of a run on this machine as the bundle has them, stand-ins with their files.

    Empty where there is no device role and none is to be simulated.

    Raises:
        RefusedError: a role gets none, or there is nothing to simulate.
    """
    is_simulated = options.pods is not None
    if isinstance(lane.run, CommandRunSpec):
        if not is_simulated:
            return {}
        message = "a program of one's own is not simulated (got a command run, expected device roles)"
        raise RefusedError([Refusal(Label.PODS_UNSUPPORTED, message, Where(SIMULATED))])
    planned = derive(lane.run)
    if is_simulated:
        from orchestrator.qualify.stand_ins import stand_ins

        pinned, files = stand_ins(planned, lane, options.content.root, options.cache)
        return {cards.FILE: dumps(pinned.as_json()), **files}
    from orchestrator.qualify.cards_here import cards_here

    found = cards_here(planned, lane)
    return {cards.FILE: dumps(found.as_json())} if found else {}


def _reopen(options: RunOptions, bundle: Path) -> Opening:
    opened = bundles.reopen(bundle)
    try:
        view = View(bundle)
        _same_content(options, opened, view)
        _same_cards(view)
        asks_nobody = opened.stream.sealed or options.gives_up_nodes
        return Opening(opened, None if asks_nobody else _same_place(options, opened, view))
    except BaseException:
        opened.close()
        raise


def _same_content(options: RunOptions, opened: bundles.Opened, view: View) -> None:
    """Content is what programs are built from; once they are built, they are in the bundle."""
    recorded = opened.stream.events[0].data["content_sha256"]
    if recorded != options.content.digest and view.attempt(build.NAME) is None:
        digests = f"(got {options.content.digest}, expected {recorded})"
        message = f"content has changed since this run began {digests}"
        raise RefusedError([Refusal(Label.FILE_UNREADABLE, message, Where(str(options.content.root)))])


def _same_cards(view: View) -> None:
    """Refuses a bundle whose cards are not those that it was begun with."""
    try:
        _ = view.pinned_cards
    except (ValueError, LookupError, TypeError) as error:
        message = f"the run's cards are not to be read (got {error}, expected what it was begun with)"
        where = Where(str(view.bundle / cards.FILE))
        raise RefusedError([Refusal(Label.FILE_UNREADABLE, message, where)]) from error


def _same_place(options: RunOptions, opened: bundles.Opened, view: View) -> PodsSpec | None:
    """The rental that a run goes on with, if it is the one that it was begun on; None for this machine."""
    begun: Mapping[str, str] = opened.stream.events[0].data
    where = Where(str(view.bundle))
    named = begun["pods"] if options.pods is None else str(options.pods)
    if named != begun["pods"] and {named, begun["pods"]} & {LOCAL, SIMULATED}:
        message = f"the run was begun elsewhere (got {named}, expected {begun['pods']})"
        raise RefusedError([Refusal(Label.POD_CHANGED, message, where)])
    if named in (LOCAL, SIMULATED):
        if begun["remote_root"] != (here := _remote_root()):
            message = f"the run has its folder elsewhere (got {here}, expected {begun['remote_root']})"
            hint = "TMPDIR names the place"
            raise RefusedError([Refusal(Label.REMOTE_ROOT, message, where, hint=hint)])
        return None
    path = options.pods or Path(begun["pods"])
    if options.pods is None and not path.exists():
        message = f"the run's pods file is not here (got nothing at {path}, expected it)"
        hint = "`--pods FILE` names it"
        raise RefusedError([Refusal(Label.FILE_MISSING, message, where, hint=hint)])
    pods, now = _rental(path, view.lane, view.plan, options)
    if view.pods is not None and (found := pins.changed(view.pods, now, str(path))):
        raise RefusedError(found)
    return pods


def _remote_root() -> str:
    """The folder for this user's runs on this machine, as the journal has it."""
    try:
        root = str(own_root())
        root.encode()
    except (OSError, UnicodeEncodeError) as error:
        message = f"there is no temporary folder to run in (got {error}, expected one; TMPDIR names it)"
        raise RefusedError([Refusal(Label.REMOTE_ROOT, message, Where("TMPDIR"))]) from error
    return root
