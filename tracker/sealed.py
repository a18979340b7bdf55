"""Reading a sealed bundle into one value, after it has verified: what the tracker keeps of a run.

Knows the shape of `qualification.json` and `binding.json`. Knows no database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from evidence import canonical, digest, stream
from evidence.bundle import MAX_DOCUMENT_BYTES
from evidence.files import read_bounded
from evidence.verify import verify
from tracker.errors import BundleError
from tracker.programme import GRADES

_VERDICTS = ("pass", "fail", "unknown")
_NONE: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Device:
    """A card as bound to one role. `uuid` is `role:NAME` where the binding tells none (a stand-in)."""

    role: str
    node: str
    product: str
    uuid: str
    minor: int | None
    profile: str | None
    driver: str | None


@dataclass(frozen=True)
class Sealed:
    """What a verified bundle says of its run.

    Attributes:
        seal: SHA-256 of `qualification.json`, lower hexadecimal.
        head: SHA-256 of the stream's last line, lower hexadecimal.
        records: how many records the stream has.
        omitted: canonical JSON of the steps left out and why; `{}` if none.
        judge, judge_version: who judged it when it was sealed: canonical JSON, and the version in it.
        seconds: wall seconds by measurement name: `wall` for the lane, `step.NAME.wall` for each step that
            the stream has records about (an event's subject is `STEP` or `STEP/...`).
    """

    bundle: Path
    run_id: str
    lane: str
    plan: str
    system: str
    verdict: str
    grade: str
    started: str
    ended: str
    omitted: str
    seal: str
    head: str
    records: int
    content_sha256: str
    judge: str
    judge_version: str
    parent_seal: str | None
    devices: tuple[Device, ...]
    seconds: tuple[tuple[str, float], ...]


def read(bundle: Path) -> Sealed:
    """Verify a bundle and read it. The bytes read are the bytes that verified.

    Raises:
        BundleError: it does not verify (every file concerned is named), is not sealed, or contradicts itself.
    """
    try:
        raw = read_bounded(bundle / "qualification.json", MAX_DOCUMENT_BYTES)
    except (OSError, ValueError):
        raw = b""  # verification says what is wrong with it
    seal = digest.sha256_bytes(raw)
    found = verify(bundle, seal=seal if raw else None)
    if found:
        raise BundleError(bundle, (f"{problem.name}: {problem.message}" for problem in found))
    return _Reader(bundle).sealed(raw, seal)


class _Reader:
    """Takes values out of a bundle's JSON; each complaint names the file and the field."""

    def __init__(self, bundle: Path) -> None:
        self.bundle = bundle

    def sealed(self, raw: bytes, seal: str) -> Sealed:
        told = self.mapping("qualification.json", "", canonical.loads(raw))
        binding = self.binding(told)
        recorded = self.mapping("qualification.json", "stream", told.get("stream"))
        omitted = self.mapping("qualification.json", "omitted", told.get("omitted", {}))
        judge = self.mapping("qualification.json", "judge", told.get("judge"))
        parent = told.get("parent")
        sealed = Sealed(
            bundle=self.bundle.resolve(),
            run_id=self.fact(told, "run_id"),
            lane=self.fact(told, "lane"),
            plan=self.sha256(told, "plan"),
            system=self.sha256(told, "system"),
            verdict=self.choice("verdict", self.fact(told, "verdict"), _VERDICTS),
            grade=self.choice("grade", self.fact(told, "grade"), GRADES),
            started=self.fact(told, "started"),
            ended=self.fact(told, "ended"),
            omitted=canonical.dumps(omitted).decode(),
            seal=seal,
            head=self.text("qualification.json", recorded, "head"),
            records=self.whole("records", recorded.get("records")),
            content_sha256=self.sha256(told, "content_sha256"),
            judge=canonical.dumps(judge).decode(),
            judge_version=self.text("qualification.json", judge, "version"),
            parent_seal=self.text("qualification.json", parent, "seal")
            if isinstance(parent, Mapping) and parent.get("seal") is not None
            else None,
            devices=self.devices(binding),
            seconds=_seconds(self.bundle, told),
        )
        self.consistent(sealed, told, binding)
        return sealed

    def binding(self, told: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give `binding.json` as the listing has it; empty where the run ended before it was written."""
        listed = {
            entry.get("name"): entry.get("sha256")
            for entry in told.get("files", ())
            if isinstance(entry, Mapping)
        }
        if "binding.json" not in listed:
            return _NONE
        try:
            raw = (self.bundle / "binding.json").read_bytes()
            value = canonical.loads(raw)
        except (OSError, canonical.CanonicalError) as error:
            raise self.refused("binding.json", f"unreadable ({error})") from error
        if digest.sha256_bytes(raw) != listed["binding.json"]:
            raise self.refused("binding.json", "changed while it was read")
        return self.mapping("binding.json", "", value)

    def devices(self, binding: Mapping[str, Any]) -> tuple[Device, ...]:
        found = []
        for role, entry in self.mapping("binding.json", "roles", binding.get("roles", {})).items():
            bound = self.mapping("binding.json", f"roles.{role}", entry)
            if bound.get("device") is None:
                continue
            card = self.mapping("binding.json", f"roles.{role}.device", bound["device"])
            minor = card.get("minor")
            found.append(
                Device(
                    role=role,
                    node=self.text("binding.json", bound, "node"),
                    product=self.text("binding.json", card, "product"),
                    uuid=str(card.get("uuid") or f"role:{role}"),
                    minor=None if minor is None else self.whole(f"roles.{role}.device.minor", minor),
                    profile=_optional(card.get("profile")),
                    driver=_optional(card.get("driver")),
                )
            )
        return tuple(found)

    def consistent(self, sealed: Sealed, told: Mapping[str, Any], binding: Mapping[str, Any]) -> None:
        """Refuse what would make a pass of what its own files deny."""
        steps = [self.mapping("qualification.json", "steps", step) for step in _entries(told.get("steps"))]
        verdicts = {str(step.get("verdict")) for step in steps}
        if sealed.verdict == "pass" and ("pass" not in verdicts or verdicts - {"pass", "not-applicable"}):
            said = ", ".join(sorted(verdicts)) or "no step"
            raise self.refused(
                "qualification.json",
                f"a pass with steps that did not (got {said}, expected pass)",
            )
        if sealed.grade != "physical":
            return
        if not sealed.devices or any(device.uuid.startswith("role:") for device in sealed.devices):
            raise self.refused(
                "binding.json", "grade physical (got a card without UUID, expected one for each)"
            )
        for role, bound in binding.get("roles", {}).items():
            if bound.get("emulator") is not None:
                raise self.refused("binding.json", f"grade physical, yet role {role} ran under an emulator")
            if (bound.get("device") or {}).get("simulated"):
                raise self.refused(
                    "binding.json", f"grade physical, yet the card of role {role} is a stand-in"
                )

    def mapping(self, name: str, key: str, value: object) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise self.refused(name, f"{key or 'the document'} (got {_kind(value)}, expected an object)")
        return value

    def sha256(self, told: Mapping[str, Any], key: str) -> str:
        value = self.fact(told, key)
        if not digest.is_sha256(value):
            raise self.refused(
                "qualification.json", f"{key} (got {value[:70]!r}, expected 64 hexadecimal digits)"
            )
        return value

    def fact(self, told: Mapping[str, Any], key: str) -> str:
        return self.text("qualification.json", told, key)

    def text(self, name: str, mapping: Mapping[str, Any], key: str) -> str:
        value = mapping.get(key)
        if not isinstance(value, str) or not value:
            raise self.refused(name, f"{key} (got {_kind(value)}, expected text)")
        return value

    def whole(self, key: str, value: object) -> int:
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 53:
            raise self.refused("qualification.json", f"{key} (got {_kind(value)}, expected a whole number)")
        return value

    def choice(self, key: str, value: str, choices: Sequence[str]) -> str:
        if value not in choices:
            raise self.refused(
                "qualification.json", f"{key} (got {value!r}, expected one of {', '.join(choices)})"
            )
        return value

    def refused(self, name: str, problem: str) -> BundleError:
        return BundleError(self.bundle, (f"{name}: {problem}",))


def _seconds(bundle: Path, told: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """Give wall seconds of the lane, and of each step from the first to the last record about it."""
    spans: dict[str, tuple[str, str]] = {}
    try:
        for event, _ in stream.scan(bundle / "stream.jsonl"):
            step = event.subject.split("/", 1)[0]
            spans[step] = (spans.get(step, (event.time, ""))[0], event.time)
    except (OSError, stream.StreamError) as error:
        raise BundleError(bundle, (f"stream.jsonl: changed while it was read ({error})",)) from error
    names = [str(step.get("name")) for step in _entries(told.get("steps")) if isinstance(step, Mapping)]
    found = [("wall", _between(str(told.get("started")), str(told.get("ended"))))]
    found.extend(
        (f"step.{name}.wall", _between(*spans[name])) for name in dict.fromkeys(names) if name in spans
    )
    return tuple((name, seconds) for name, seconds in found if seconds is not None and seconds >= 0)


def _between(start: str, end: str) -> float | None:
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        return None


def _entries(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _optional(value: object) -> str | None:
    return None if value is None else str(value)


def _kind(value: object) -> str:
    return "nothing" if value is None else f"{type(value).__name__} {str(value)[:40]!r}"
