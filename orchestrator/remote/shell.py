"""One long-lived POSIX shell on a node: requests and answers, framed by marks that nothing else can write.

Knows the channel, the marks and the deadlines. Must not know what the functions in `node/` are for.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import select
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Final

import paramiko

from orchestrator.errors import Label
from orchestrator.remote.base import RemoteError, UnreachableError

# what the shell reads before it serves; the order is of no matter, but for the first
SCRIPTS: Final = tuple(
    Path(__file__).with_name("node") / f"{name}.sh"
    for name in ("serve", "looks", "files", "folders", "jobs", "machine")
)
# `env`, since csh sets no variable before a command; `exec`, since nobody needs the login shell any more
COMMAND: Final = "exec env LC_ALL=C sh"

_PIECE_BYTES: Final = 32 << 10
# what a server holds for a reader that is not so fast costs it time that grows with the square
_AHEAD_BYTES: Final = 256 << 10
_FAR_S: Final = 0.025
_NOISE_BYTES: Final = 16 << 10
_SILENCE_S: Final = 5.0
_ANSWER_S: Final = 10.0
_GUARD_S: Final = 1.0
_MOST_BYTES: Final = 1 << 18
MOST_SAID: Final = 64 << 20
"""A node that says more, where it is asked for no file, does not stop."""
_AROUND: Final = 64 << 10  # what may stand beside a file's bytes: marks, a size, noise

Process = tuple[int, int, str]  # number, start time in clock ticks, boot
# nodes of one rental may be one machine: one way's shell is no stranger to another
_made: set[Process] = set()


@dataclass(frozen=True)
class Answer:
    """What a function on the node gave: its code, and all that it wrote."""

    code: int
    stdout: bytes

    @property
    def last_line(self) -> str:
        """The last line of it, for people; nothing if there is none."""
        return self.stdout.decode("utf-8", "backslashreplace").strip().rpartition("\n")[2]


@dataclass(frozen=True)
class Hello:
    """What a shell says of itself: its process, the node's boot, and the user's HOME (or nothing)."""

    pid: int
    start_ticks: int
    boot_id: str
    home: str

    @property
    def process(self) -> Process:
        """Which process it is, told from any later one with its number."""
        return self.pid, self.start_ticks, self.boot_id


def is_ours(process: Process) -> bool:
    """Says whether a process of some node is a shell that this controller opened."""
    return process in _made


class DeadlineError(Exception):
    """The node is there, and has not answered in time."""


def quoted(word: str) -> str:
    """Gives a word as the shell reads it, on one line."""
    plain = word.replace("'", "'\\''").replace("\n", "'\"$orch_nl\"'")
    return f"'{plain}'"


class _Stream:
    """What came on one of the channel's streams and is not taken yet."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._seen = 0

    def __len__(self) -> int:
        return len(self._data)

    def feed(self, data: bytes) -> bool:
        """Takes data; False if there is none."""
        self._data += data
        return bool(data)

    def has(self, mark: bytes) -> bool:
        """Whether a mark has begun."""
        place = self._data.find(mark, max(0, self._seen - len(mark)))
        self._seen = len(self._data) if place < 0 else place
        return place >= 0

    def take(self, mark: bytes, tail: re.Pattern[bytes]) -> tuple[bytes, bytes] | None:
        """Gives what stands before a mark, and what the mark's end says; None while it has not come."""
        if not self.has(mark) or (end := tail.match(self._data, self._seen + len(mark))) is None:
            return None
        before, said = bytes(self._data[: self._seen]), end.group(1)
        del self._data[: end.end()]
        self._seen = 0
        return before, said

    def drop(self) -> bytes:
        """Gives and forgets all."""
        data = bytes(self._data)
        self._data.clear()
        self._seen = 0
        return data


_BEGIN = re.compile(rb"(<)\n")
_END = re.compile(rb"([0-9]{1,3})\n")
_HELLO = re.compile(r"([0-9]{1,10})\x1e([0-9]{1,19})\x1e([0-9a-z-]{1,64})\x1e([^\x1e]*)\x1e")


class Shell:
    """A shell on a node, one request at a time.

    Attributes:
        noise: the first of what came outside of the marks: login files, banners.
        hello: what the shell says of itself.
    """

    def __init__(self, name: str, transport: paramiko.Transport, *, deadline_s: float) -> None:
        """Opens it and waits until it answers.

        Raises:
            RemoteError: `shell-unusable`: no shell answers there.
            UnreachableError: the connection broke.
        """
        self.noise = b""
        self._name = name
        self._transport = transport
        self._nonce = secrets.token_hex(16).encode()
        self._number = 0
        self._out, self._err = _Stream(), _Stream()
        self._most = MOST_SAID
        self._channel = self._opened(deadline_s)
        self._window, self._ahead = self._channel.out_window_size, _AHEAD_BYTES
        self._poll = self._watched()
        self.hello = self._begin(deadline_s)

    def _opened(self, deadline_s: float) -> paramiko.Channel:
        try:
            channel = self._transport.open_session(timeout=deadline_s)
            channel.settimeout(deadline_s)
            channel.exec_command(COMMAND)
        except Exception as error:  # what a server sends can break the library in its own ways
            if not self._transport.is_active():
                raise self._gone(error) from error
            raise self._unusable(f"the server opens no session ({error or type(error).__name__})") from error
        return channel

    def _watched(self) -> select.poll:
        poll = select.poll()
        try:
            poll.register(self._channel.fileno(), select.POLLIN)
        except OSError as error:  # it takes two more open files
            self.close()
            raise RemoteError(
                f"{self._name}: this machine can watch no more nodes (got `{error.strerror}`, expected room"
                " for two more open files); `ulimit -n` raises the limit"
            ) from error
        return poll

    def _begin(self, deadline_s: float) -> Hello:
        hello = b"printf '\\n%s %s <\\n' \"$orch_nonce\" 0; orch_hello\n"
        serve = b"printf '\\n%s %s 0\\n' \"$orch_nonce\" 0; orch_serve; exit\n"
        limit = time.monotonic() + deadline_s
        try:
            self._send(
                b"orch_nonce=%s\n" % self._nonce
                + b"".join(script.read_bytes() for script in SCRIPTS)
                + hello
                + serve,
                limit,
            )
            answer = self._answer(0, limit)
        except DeadlineError as error:
            self.close()
            raise self._unusable(f"no shell answered within {deadline_s:.0f} s") from error
        except UnreachableError as error:
            with contextlib.suppress(RemoteError):  # what it said before it ended tells why
                self._drain()
            self.close()
            if not self._transport.is_active():
                raise
            raise self._unusable("what the server runs for us is no shell, or ended at once") from error
        found = _HELLO.fullmatch(answer.stdout.decode("utf-8", "surrogateescape"))
        if found is None:
            self.close()
            raise self._unusable("what answers there does not know our requests")
        said = Hello(int(found[1]), int(found[2]), found[3], found[4])
        _made.add(said.process)
        return said

    def call(
        self,
        function: str,
        *words: str,
        deadline_s: float,
        data: Iterable[bytes] = (),
        most: int = MOST_SAID,
    ) -> Answer:
        """Calls a function on the node, with what it reads after the call, for an answer of `most` bytes.

        Raises:
            RemoteError: it says more than that, and may never end.
            DeadlineError: the node is there and did not answer in time; the shell is of no use any more.
            UnreachableError: the connection, or the shell, is gone.
        """
        limit = time.monotonic() + deadline_s
        self._most = max(most, MOST_SAID) + _AROUND
        number = self._request(limit, function, *words)
        for piece in data:
            self._send(piece, limit)
        answer = self._answer(number, limit)
        self._most = MOST_SAID
        return answer

    def run(self, argv: Iterable[str], *, deadline_s: float) -> tuple[int | None, bytes, bytes]:
        """Runs a program to its end, or to the deadline; gives its code, if it came to its end, and output.

        Raises:
            DeadlineError: it could not be ended; the shell is of no use any more.
            UnreachableError: as `call`.
        """
        limit = time.monotonic() + deadline_s
        number = self._request(limit + _ANSWER_S, "orch_run", *argv)
        both = (self._out, self._err)
        for stream in both:
            self.noise = (self.noise + self._take(stream, number, _BEGIN, limit + _ANSWER_S)[0])[
                :_NOISE_BYTES
            ]
        late = not self._ended(number, min(limit, time.monotonic() + _GUARD_S))
        if late and (left_s := limit - time.monotonic()) > 0:
            # from here on it ends in time even if we do not come back
            self._tell("orch_guard", str(int(left_s) + 2))
            late = not self._ended(number, limit)
        if late:
            self._tell("orch_stop")
        stdout, stderr = (self._take(stream, number, _END, limit + _ANSWER_S) for stream in both)
        self._tell("orch_done")
        return None if late else int(stdout[1]), stdout[0], stderr[0]

    def close(self) -> None:
        """Ends it; what it started as a job goes on."""
        with contextlib.suppress(Exception):  # whatever is left of it, it is not ours to use any more
            self._channel.close()

    def _request(self, limit: float, *words: str) -> int:
        self._number += 1
        call = " ".join(words).encode("utf-8", "surrogateescape")
        self._send(b"\n%s %d %s\n" % (self._nonce, self._number, call), limit)
        return self._number

    def _tell(self, *words: str) -> None:
        self._send(b"\n%s . %s\n" % (self._nonce, " ".join(words).encode()), time.monotonic() + _ANSWER_S)

    def _answer(self, number: int, limit: float) -> Answer:
        noise, _ = self._take(self._out, number, _BEGIN, limit)
        payload, code = self._take(self._out, number, _END, limit)
        self.noise = (self.noise + noise.strip() + self._err.drop())[:_NOISE_BYTES]
        return Answer(int(code), payload)

    def _ended(self, number: int, limit: float) -> bool:
        """Waits for the end of what runs; False if it has not come by then."""
        mark = b"\n%s %d " % (self._nonce, number)
        try:
            while not all(stream.has(mark) for stream in (self._out, self._err)):
                self._pump(limit)
        except DeadlineError:
            return False
        return True

    def _take(
        self, stream: _Stream, number: int, tail: re.Pattern[bytes], limit: float
    ) -> tuple[bytes, bytes]:
        mark = b"\n%s %d " % (self._nonce, number)
        while (found := stream.take(mark, tail)) is None:
            self._pump(limit)
        return found

    def _send(self, data: bytes, limit: float) -> None:
        """Sends in pieces: a long one would be copied again for each of its parts."""
        for start in range(0, len(data), _PIECE_BYTES):
            piece = data[start : start + _PIECE_BYTES]
            self._keep_pace()
            while piece:
                if time.monotonic() > limit:
                    raise DeadlineError
                self._channel.settimeout(_SILENCE_S)
                try:
                    piece = piece[self._channel.send(piece) :]
                except TimeoutError:
                    self._demand_life()
                except (OSError, EOFError, paramiko.SSHException) as error:
                    raise self._gone(error) from error

    def _keep_pace(self) -> None:
        """Waits until the server has passed on most of what is under way; more may be to one that is far."""
        channel = self._channel
        with channel.out_buffer_cv:
            while self._window - channel.out_window_size > self._ahead and not channel.closed:
                if not channel.out_buffer_cv.wait(_FAR_S):
                    self._ahead *= 2

    def _pump(self, limit: float) -> None:
        """Takes what comes next, on either stream: one that nobody reads would hold up both."""
        left_s = limit - time.monotonic()
        if left_s <= 0:
            raise DeadlineError
        channel = self._channel
        # the library can take back its sign for one stream while it gives it for the other
        is_there = channel.recv_ready() or channel.recv_stderr_ready()
        if not is_there and not self._poll.poll(min(left_s, _SILENCE_S) * 1000):
            if left_s > _SILENCE_S:
                self._demand_life()
            return
        if not self._drain() and (channel.eof_received or channel.closed):
            raise self._gone(None)

    def _drain(self) -> bool:
        """Takes what has come, without waiting; whether anything had."""
        channel, came = self._channel, False
        while channel.recv_ready():
            came = self._out.feed(channel.recv(_MOST_BYTES))
            self._demand_end(self._out)
        while channel.recv_stderr_ready():
            came = self._err.feed(channel.recv_stderr(_MOST_BYTES))
            self._demand_end(self._err)
        return came

    def _demand_end(self, stream: _Stream) -> None:
        if len(stream) > self._most:
            self.close()
            stream.drop()
            raise RemoteError(
                f"{self._name}: its answer has no end (got more than {self._most} bytes, expected fewer)",
                Label.SHELL_UNUSABLE,
            )

    def _demand_life(self) -> None:
        """Asks whether the other side still is there: a connection that was cut looks open for hours."""
        done = Event()

        def ask() -> None:
            with contextlib.suppress(Exception):  # that it does not return is the answer
                self._transport.global_request("keepalive@openssh.com", wait=True)
                done.set()

        Thread(target=ask, daemon=True).start()
        if not done.wait(_ANSWER_S) or not self._transport.is_active():
            self._transport.close()
            raise UnreachableError(
                f"{self._name}: the connection is silent (got nothing for {_ANSWER_S:.0f} s)"
            )

    def _gone(self, error: BaseException | None) -> UnreachableError:
        what = "the shell there has ended" if self._transport.is_active() else "the connection broke"
        return UnreachableError(f"{self._name}: {what}" + (f" ({error})" if error and str(error) else ""))

    def _unusable(self, why: str) -> RemoteError:
        said = self.noise + self._out.drop() + self._err.drop()
        shown = said.decode("utf-8", "backslashreplace").strip().splitlines()
        got = repr(shown[-1][:200]) if shown else "nothing"
        return RemoteError(
            f"{self._name}: {why} (got {got}, expected a POSIX shell);"
            " take an endpoint and an account that have one",
            Label.SHELL_UNUSABLE,
        )
