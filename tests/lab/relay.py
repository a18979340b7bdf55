"""A wire between two networks that delays, loses or swallows what it carries: `relay.py TAP PID TAP`.

Opens the first TAP device in the network that it is started in, the second in that of process PID. Commands
come as lines of JSON on stdin, each the whole of the wire's behaviour from then on, and are answered with
`ok`: `{"delay_ms": 0, "loss": 0.0, "swallow": ["out", "in"], "only": ["192.0.2.1"]}`. `out` is from the
first to the second; `only`, if it is not empty, leaves every frame that names none of these addresses
alone. Stands alone: a program.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import ipaddress
import json
import os
import random
import selectors
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 2, 0x1000
CLONE_NEWNET = 0x40000000
FRAME = 1 << 16


def tap(name: str) -> int:
    """Makes a TAP device that lives as long as the descriptor."""
    found = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(found, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return found


def enter(pid: int) -> None:
    """Moves this thread into the network of another process."""
    space = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(space, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(space)


def addresses(frame: bytes) -> tuple[bytes, ...]:
    """Source and destination of an Ethernet frame that carries IPv4 or IPv6; nothing of any other."""
    kind = frame[12:14]
    if kind == b"\x08\x00":
        return frame[26:30], frame[30:34]
    if kind == b"\x86\xdd":
        return frame[22:38], frame[38:54]
    return ()


class Wire:
    """What happens to a frame, by the last command."""

    def __init__(self) -> None:
        self.behave("{}")

    def behave(self, line: str) -> None:
        asked = json.loads(line)
        self.delay_s = asked.get("delay_ms", 0) / 1000
        self.loss = asked.get("loss", 0.0)
        self.swallow = frozenset(asked.get("swallow", ()))
        self.only = frozenset(ipaddress.ip_address(one).packed for one in asked.get("only", ()))

    def due(self, frame: bytes, direction: str) -> float | None:
        """When it goes on, on the monotonic clock; None if never."""
        now = time.monotonic()
        if self.only and self.only.isdisjoint(addresses(frame)):
            return now
        if direction in self.swallow or (self.loss and random.random() < self.loss):
            return None
        return now + self.delay_s


def say_ok() -> None:
    sys.stdout.write("ok\n")
    sys.stdout.flush()


def main() -> None:
    near = tap(sys.argv[1])
    enter(int(sys.argv[2]))
    far = tap(sys.argv[3])
    ways = {near: (far, "out"), far: (near, "in")}
    wire, waiting, count = Wire(), [], 0
    selector = selectors.DefaultSelector()
    for source in (near, far, sys.stdin.fileno()):
        selector.register(source, selectors.EVENT_READ)
    say_ok()
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for key, _ in selector.select(timeout):
            if key.fd == sys.stdin.fileno():
                line = sys.stdin.readline()
                if not line:
                    return
                wire.behave(line)
                say_ok()
                continue
            frame = os.read(key.fd, FRAME)
            target, direction = ways[key.fd]
            when = wire.due(frame, direction)
            if when is not None:
                count += 1  # equal times keep their order
                heapq.heappush(waiting, (when, count, target, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, target, frame = heapq.heappop(waiting)
            try:
                os.write(target, frame)
            except OSError:  # the device is down, or its queue is full: lost, as on any wire
                continue


main()
