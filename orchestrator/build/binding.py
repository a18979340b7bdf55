"""The binding: one deployment of a program, in the 512 bytes that its `.orch.binding` section holds.

Knows the layout (`roles/runtime/binding.h` is the other side); knows no ELF.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import struct
import uuid
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self

SIZE = 512
MAGIC = b"ORCHBND1"
VERSION = 3

Mode = Literal["train", "evaluate"]

_MODES: tuple[Mode, ...] = ("train", "evaluate")
_CHECKED = SIZE - 32
_LAYOUT = struct.Struct("<8sIIII32s32s32s16sQQQQQQQII16s16sII16sIII16s196x")
_LARGEST = 2**53  # numbers pass through JSON
_PORTS = 65536
_DIGEST = 32
_SECRET = 16
_ZERO = bytes(_DIGEST)
_UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
MOST_MINOR = 247
NOWHERE = "0.0.0.0"  # noqa: S104  # a place where nobody listens and that nobody dials


class BindingError(ValueError):
    """Bytes or values that are no binding."""


@dataclass(frozen=True)
class DeviceBinding:
    """The one card that a device role may use, and how.

    Attributes:
        minor: its Linux minor number, 0 to 247.
        uuid: `GPU-` and the card's UUID; None binds by the minor alone (a pods file says `node-only`).
        is_shadowed: whether the host's copies of parameters and state are overwritten before every forward
            pass: the host-shadow control.
        is_simulated: whether the card is a stand-in, whose library and inventory lie in the work folder.
        has_established_driver: whether a driver that the profile was not established for is refused.
    """

    minor: int
    uuid: str | None
    is_shadowed: bool = False
    is_simulated: bool = False
    has_established_driver: bool = False

    def values(self) -> tuple[int, int, bytes]:
        """Flags, minor and the UUID's 16 bytes.

        Raises:
            BindingError: a value has no place in the layout.
        """
        if type(self.minor) is not int or not 0 <= self.minor <= MOST_MINOR:
            raise BindingError(f"a minor is out of range (got {self.minor}, expected 0 to {MOST_MINOR})")
        if self.uuid is not None and not _UUID.fullmatch(self.uuid):
            raise BindingError(f"no card's UUID (got {self.uuid!r}, expected GPU-...)")
        said = (self.uuid is None, self.is_shadowed, self.is_simulated, self.has_established_driver)
        flags = _HAS_DEVICE | sum(bit for bit, is_set in zip(_DEVICE_BITS, said, strict=True) if is_set)
        return flags, self.minor, bytes(16) if self.uuid is None else uuid.UUID(self.uuid[4:]).bytes

    @classmethod
    def of(cls, flags: int, minor: int, card: bytes) -> DeviceBinding | None:
        """The inverse of `values`; None where no card is bound."""
        if not flags & _HAS_DEVICE:
            return None
        node_only, *said = (bool(flags & bit) for bit in _DEVICE_BITS)
        return cls(minor, None if node_only else f"GPU-{uuid.UUID(bytes=card)}", *said)


_HAS_DEVICE = 1
_DEVICE_BITS = (2, 4, 8, 16)


@dataclass(frozen=True)
class Binding:
    """One deployment of one role's program.

    Attributes:
        plan: the plan's digest, hex.
        run_id: the run, a UUID.
        epoch: counts the starts of a lineage of checkpoints; a restored one is of an earlier epoch.
        mode: `train`, or `evaluate` for one round without an update.
        resume: whether training begins from `restore/`.
        restore_sha256: digest of the manifest to begin from, hex; None accepts any.
        target: version to reach.
        publish_at: version to publish at besides the target; 0 for none.
        data_sha256: digest of the role's `samples` file, hex.
        address: IPv4 or IPv6 literal where the role listens; `NOWHERE` for a role without children.
        port: its port; 0 for a role without children.
        secret: of the launch, 32 lower-case hexadecimal digits; who does not know it is no role of it.
        connect_ms: until all roles have met.
        round_ms: for each wait of a round or a publication.
        run_ms: for the whole program.
        hold_after: reserved, 0.
        parent_address: IPv4 or IPv6 literal that the role dials; `NOWHERE` for the root.
        parent_port: its port; 0 for the root.
        mesh: whether roles may open connections to each other besides those of the tree.
        device: the card of a device role; None for a host role.
    """

    plan: str
    run_id: str
    epoch: int
    mode: Mode
    resume: bool
    restore_sha256: str | None
    target: int
    publish_at: int
    data_sha256: str
    address: str
    port: int
    connect_ms: int
    round_ms: int
    run_ms: int
    secret: str
    hold_after: int = 0
    parent_address: str = NOWHERE
    parent_port: int = 0
    mesh: bool = False
    device: DeviceBinding | None = None

    def pack(self) -> bytes:
        """The 512 bytes, the last 32 of them SHA-256 of the others.

        Raises:
            BindingError: a value has no place in the layout.
        """
        try:
            head = _LAYOUT.pack(
                MAGIC,
                VERSION,
                _MODES.index(self.mode),
                int(self.resume),
                0,
                _digest(self.plan),
                _digest(self.data_sha256),
                _ZERO if self.restore_sha256 is None else _digest(self.restore_sha256),
                uuid.UUID(self.run_id).bytes,
                *(_number(name, getattr(self, name)) for name in _NUMBERS),
                *_endpoint(self.address, self.port),
                _bytes("a secret", self.secret, _SECRET),
                *_endpoint(self.parent_address, self.parent_port),
                int(self.mesh),
                *((0, 0, bytes(16)) if self.device is None else self.device.values()),
            )
        except ValueError as error:
            raise BindingError(str(error)) from error
        return head + hashlib.sha256(head).digest()

    @classmethod
    def unpack(cls, data: bytes) -> Self:
        """The binding in 512 bytes.

        Raises:
            BindingError: they are not a whole binding in its one right form.
        """
        if len(data) != SIZE or hashlib.sha256(data[:_CHECKED]).digest() != data[_CHECKED:]:
            raise BindingError("the binding is not whole")
        magic, version, mode, resume, _, plan, samples, manifest, run, *rest = _LAYOUT.unpack(data[:_CHECKED])
        numbers, ends, device = rest[: len(_NUMBERS)], rest[len(_NUMBERS) : -3], rest[-3:]
        family, port, address, secret, parent_family, parent_port, parent_address, mesh = ends
        families = {family, parent_family}
        if magic != MAGIC or version != VERSION or mode >= len(_MODES) or not families <= set(_ADDRESS_BYTES):
            raise BindingError("the binding is of another form")
        binding = cls(
            plan=plan.hex(),
            run_id=str(uuid.UUID(bytes=run)),
            mode=_MODES[mode],
            resume=bool(resume),
            restore_sha256=None if manifest == _ZERO else manifest.hex(),
            data_sha256=samples.hex(),
            address=_shown(family, address),
            port=port,
            secret=secret.hex(),
            parent_address=_shown(parent_family, parent_address),
            parent_port=parent_port,
            mesh=bool(mesh),
            device=DeviceBinding.of(*device),
            **dict(zip(_NUMBERS, numbers, strict=True)),
        )
        if binding.pack() != data:
            raise BindingError("the binding is not in its one right form")
        return binding

    def as_json(self) -> dict[str, object]:
        """The values by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "device": None if self.device is None else asdict(self.device)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """The binding of these values.

        Raises:
            BindingError: names are missing or unknown, or a value has no place in the layout.
        """
        try:
            device = value["device"]
            binding = cls(**{**value, "device": None if device is None else DeviceBinding(**device)})
            binding.pack()
        except (TypeError, KeyError, AttributeError, struct.error) as error:  # a value of another type
            raise BindingError(str(error)) from error
        return binding


_ADDRESS_BYTES = {4: 4, 6: 16}
_NUMBERS = ("epoch", "target", "publish_at", "hold_after", "connect_ms", "round_ms", "run_ms")


def _digest(text: str) -> bytes:
    return _bytes("a digest", text, _DIGEST)


def _bytes(what: str, text: str, size: int) -> bytes:
    data = bytes.fromhex(text)
    if len(data) != size or data.hex() != text:
        raise BindingError(f"{what} is {2 * size} lower-case hexadecimal digits (got {text!r})")
    return data


def _number(name: str, value: int) -> int:
    if not 0 <= value < _LARGEST:
        raise BindingError(f"{name} is out of range (got {value}, expected 0 to 2^53 - 1)")
    return value


def _endpoint(text: str, port: int) -> tuple[int, int, bytes]:
    """Family, port and the address's bytes."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        raise BindingError(f"an address has no zone (got {text})")
    return address.version, _port(port), address.packed


def _shown(family: int, data: bytes) -> str:
    return str(ipaddress.ip_address(data[: _ADDRESS_BYTES[family]]))


def _port(value: int) -> int:
    if not 0 <= value < _PORTS:
        raise BindingError(f"a port is out of range (got {value}, expected 0 to 65535)")
    return value
