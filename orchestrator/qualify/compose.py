"""Launches as steps ask for them: bindings and files made from a few words.

Pure: the same words over the same bundle give the same launch, but for the ports and the secret, which are
the acting side's to choose. So a judge can tell whether what was launched is what its step asks for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.build.binding import Binding, DeviceBinding, Mode
from orchestrator.qualify import devices
from orchestrator.qualify.cards import BoundCard
from orchestrator.qualify.command.start import start as command_start
from orchestrator.qualify.endpoints import Ends
from orchestrator.qualify.launch import FROM_PLAN, OWN, Launch, PlacedFile, Start
from orchestrator.qualify.view import View


@dataclass(frozen=True)
class Wanted:
    """What a step wants to have started.

    Attributes:
        name: of the launch inside its attempt.
        epoch: membership epoch bound in.
        target: version to reach; in mode `evaluate`, the version that is evaluated.
        mode: `train` or `evaluate`.
        publish_at: a version to publish besides the target; 0 for none.
        restore: name under `restore/` -> bundle file; None starts fresh.
        roles: those that start; None for all of them.
        programs: role -> `other` where a control wants another plan's program, `swapped` where the resumed
            part of the split run wants another target's or profile's, `witness` where the order is to be
            shown, `foreign` where a control wants one for another product.
        samples: role -> bundle file that lies there instead of the plan's own words.
        inputs: of a user's own program: input -> bundle file that lies there instead of the declared one.
        file_blocks: of a user's own program: blocks of 512 bytes that no file may outgrow; None for no limit.
        placed: altered files that the bundle must hold first: bundle file -> its bytes.
        port: of the root; None for a free one.
        shadowed: whether device roles overwrite the host's copies of their state before every forward pass.
        cards: device role -> the card that it is bound to instead of its own.
        stand_in: device role -> the files of a stand-in that lie there instead: name -> bundle file.
    """

    name: str
    epoch: int
    target: int
    mode: Mode = "train"
    publish_at: int = 0
    restore: Mapping[str, str] | None = None
    roles: tuple[str, ...] | None = None
    programs: Mapping[str, str] = field(default_factory=dict)
    samples: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    file_blocks: int | None = None
    placed: Mapping[str, bytes] = field(default_factory=dict)
    port: int | None = None
    shadowed: bool = False
    cards: Mapping[str, BoundCard] = field(default_factory=dict)
    stand_in: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def compose(view: View, wanted: Wanted, *, ends: Mapping[str, Ends], secret: str) -> Launch:
    """The launch that is asked for.

    Args:
        view: the bundle, its `placed` files written.
        wanted: what the step asks for.
        ends: role -> where it listens and what it dials.
        secret: by which the roles of this launch know each other, 32 hexadecimal digits.
    """
    roles = view.roles if wanted.roles is None else wanted.roles
    if (plan := view.command) is not None:
        return Launch(wanted.name, tuple(command_start(view, plan, wanted, role) for role in roles))
    restored = tuple(
        PlacedFile(f"restore/{name}", view.digest(source), source)
        for name, source in sorted((wanted.restore or {}).items())
    )
    starts = (_start(view, wanted, role, (ends[role], secret), restored) for role in roles)
    return Launch(wanted.name, tuple(starts))


def _start(
    view: View, wanted: Wanted, role: str, chosen: tuple[Ends, str], restored: tuple[PlacedFile, ...]
) -> Start:
    ends, secret = chosen
    which = wanted.programs.get(role, OWN)
    own_words = hashlib.sha256(view.samples(role, which)).hexdigest()
    source = wanted.samples.get(role, FROM_PLAN)
    words = own_words if source == FROM_PLAN else view.digest(source)
    deadlines = view.lane.deadlines
    binding = Binding(
        plan=view.plan_of(which).digest,
        run_id=view.run_id,
        epoch=wanted.epoch,
        mode=wanted.mode,
        resume=wanted.restore is not None,
        restore_sha256=next((file.sha256 for file in restored if file.name == "restore/manifest.json"), None),
        target=wanted.target,
        publish_at=wanted.publish_at,
        data_sha256=own_words,
        address=ends.listens.address,
        port=ends.listens.port,
        parent_address=ends.dials.address,
        parent_port=ends.dials.port,
        mesh=view.wiring.is_mesh,
        secret=secret,
        connect_ms=deadlines.connect_ms,
        round_ms=deadlines.round_ms,
        run_ms=deadlines.run_ms,
        device=_device(view, wanted, role, which),
    )
    beside = _stand_in(view, wanted, role, which)
    return Start(role, which, binding, (PlacedFile("samples", words, source), *restored, *beside))


def _device(view: View, wanted: Wanted, role: str, which: str) -> DeviceBinding | None:
    """The card that a device role's program is bound to; None for a host role."""
    card = wanted.cards.get(role) or devices.cards(view, which).get(role)
    if card is None:
        return None
    return DeviceBinding(
        minor=card.minor,
        uuid=card.uuid,
        is_shadowed=wanted.shadowed,
        is_simulated=devices.is_simulated(view),
        has_established_driver=view.lane.driver == "established",
    )


def _stand_in(view: View, wanted: Wanted, role: str, which: str) -> tuple[PlacedFile, ...]:
    """The files of a stand-in card, beside the executable of a device role of a simulated run."""
    files = wanted.stand_in.get(role) or devices.stand_in(view, role, which)
    return tuple(PlacedFile(name, view.digest(source), source) for name, source in sorted(files.items()))
