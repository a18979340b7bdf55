"""Frames as a foreign program would write them: what a role under test meets on its sockets."""

from __future__ import annotations

import contextlib
import socket
import struct
import uuid
from dataclasses import dataclass

from role_bench import SECRET, Bench, family

HEADER = struct.Struct("<8s32sQQIIQ24s")
HELLO, CONTRIBUTION, TOTAL, PUBLISH, COMMITTED = range(1, 6)


@dataclass(frozen=True)
class Frame:
    plan: bytes
    sender: int
    kind: int
    epoch: int = 1
    round: int = 0
    payload: bytes = b""
    magic: bytes = b"ORCHFRM1"
    zero: bytes = bytes(24)
    length: int | None = None

    def pack(self) -> bytes:
        length = len(self.payload) if self.length is None else self.length
        head = HEADER.pack(
            self.magic, self.plan, self.epoch, self.round, self.sender, self.kind, length, self.zero
        )
        return head + self.payload


def hello_payload(
    bench: Bench, *, mode: int = 0, start: int = 0, target: int | None = None, secret: str = SECRET
) -> bytes:
    run = uuid.UUID(bench.run_id).bytes
    numbers = struct.pack("<IIQQ", mode, 0, bench.setup.target if target is None else target, start)
    return run + numbers + bytes.fromhex(secret)


def hello(bench: Bench, sender: int) -> Frame:
    return Frame(bytes.fromhex(bench.case.plan.digest), sender, HELLO, payload=hello_payload(bench))


def dial(bench: Bench) -> socket.socket:
    """A connection to the root's port once it listens."""
    bench.wait_for(bench.case.plan.roles[0].name, "listening")
    return socket.create_connection((bench.setup.address, bench.port), timeout=20)


def listen(bench: Bench) -> socket.socket:
    server = socket.create_server((bench.setup.address, bench.port), family=family(bench.setup.address))
    server.settimeout(20)
    return server


def receive(peer: socket.socket, size: int) -> bytes:
    peer.settimeout(20)
    data = b""
    while len(data) < size:
        piece = peer.recv(size - len(data))
        assert piece, "the role hung up"
        data += piece
    return data


def receive_frame(peer: socket.socket) -> Frame:
    magic, plan, epoch, round_, sender, kind, length, zero = HEADER.unpack(receive(peer, HEADER.size))
    return Frame(plan, sender, kind, epoch, round_, receive(peer, length), magic, zero)


def hung_up(peer: socket.socket) -> bool:
    """Whether the other side ends the connection, reading what it says before."""
    peer.settimeout(20)
    with contextlib.suppress(ConnectionResetError):
        while peer.recv(4096):
            pass
    return True
