"""The SSH command that a provider's page shows and a person pastes: which host, user, port and key it names.

Knows the command lines of `ssh`, `ssh://` URLs and what is seen in the wild of both; must not know a node,
start a shell or look at a file. What would run a program here, or reach the host by another way than the one
that is written down, is refused.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from orchestrator.errors import Label, Refusal, RefusedError, Where
from orchestrator.spec.places import visible

WHERE: Final = Where("the ssh command")
RUNPOD_PROXY: Final = "ssh.runpod.io"

_TAKES_VALUE: Final = frozenset("BbcDEeFIiJLlmOopQRSWw")
_FLAGS: Final = frozenset("46AaCfGgKkMNnqsTtVvXxYy")
_USED: Final = frozenset("ilop")
# what these would do here is another way to the host, another file to believe, or a program on this machine
_REFUSED: Final = frozenset("EFIJOQSWw")
_OPTIONS: Final = {"port": "p", "user": "l", "identityfile": "i"}
_HARMLESS: Final = """
addkeystoagent addressfamily batchmode checkhostip ciphers compression connectionattempts connecttimeout
controlmaster controlpath controlpersist dynamicforward exitonforwardfailure forwardagent forwardx11
forwardx11trusted globalknownhostsfile hashknownhosts hostkeyalgorithms identitiesonly kexalgorithms
localforward loglevel macs numberofpasswordprompts passwordauthentication preferredauthentications
pubkeyacceptedalgorithms pubkeyacceptedkeytypes pubkeyauthentication remoteforward requesttty sendenv
serveralivecountmax serveraliveinterval setenv stricthostkeychecking tcpkeepalive updatehostkeys
userknownhostsfile visualhostkey
"""
_URL = re.compile(r"ssh://(?:(?P<user>[^@/:\s]*)(?P<password>:[^@/\s]*)?@)?(?P<place>[^/?#\s]+)/?")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?")
_IPV6 = re.compile(r"[0-9a-fA-F:.]*:[0-9a-fA-F:.]*:[0-9a-fA-F:.]*(%[A-Za-z0-9_.-]+)?")
_PORT = re.compile(r"0*[0-9]{1,5}")
_LAST_PORT: Final = 65535
_ALIAS_HINT: Final = (
    "write it under a `Host` of your ~/.ssh/config and give that name: `orch pods add NAME user@alias`"
)


@dataclass(frozen=True)
class SshLine:
    """What a pasted command names.

    Attributes:
        host: a name, an alias of ssh_config, an IPv4 or IPv6 address (no brackets).
        user: None where the line names none.
        port: likewise.
        key: the private key's file as written, `~` included.
        ignored: parts that were there and change nothing here, as written.
    """

    host: str
    user: str | None = None
    port: int | None = None
    key: str | None = None
    ignored: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """`user@host`, as pods files and ssh write it."""
        return f"{self.user}@{self.host}" if self.user else self.host


@dataclass
class _Reading:
    """What was found so far; the first of two values counts, as for ssh."""

    found: dict[str, str] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    target: str = ""

    def refuse(self, got: str, expected: str, hint: str = "", label: Label = Label.SSH_LINE) -> None:
        self.refusals.append(
            Refusal(label, f"{_SENTENCE[label]} (got {got}, expected {expected})", WHERE, "", hint)
        )

    def take(self, letter: str, value: str, written: str) -> None:
        if letter in self.found and self.found[letter] != value:
            self.ignored.append(written)
        self.found.setdefault(letter, value)


_SENTENCE: Final = {
    Label.SSH_LINE: "cannot be taken",
    Label.SHELL_UNUSABLE: "this proxy gives no shell that a program can use",
}


def parse(text: str) -> SshLine:
    """Reads a pasted SSH command, target or URL.

    Raises:
        RefusedError: it is none, or asks for what is not done; every reason.
    """
    reading = _Reading()
    joined = "".join(text.split())
    if joined.startswith("ssh://"):  # vast.ai's command prints its URL over two lines
        _url(joined, reading)
    else:
        words = _words(text, reading)
        _command(words, reading)
    line = _line(reading)
    if reading.refusals:
        raise RefusedError(reading.refusals)
    return line


def _words(text: str, reading: _Reading) -> list[str]:
    """Gives the command's words, without the prompt and the program's name."""
    text = re.sub(r"\\\r?\n[ \t]*", " ", text.strip())
    if not text.isprintable():
        bad = next(character for character in text if not character.isprintable())
        reading.refuse(f"the character {visible(bad)}", "one line of text", "write one command on one line")
        return []
    try:
        words = shlex.split(text, posix=True)
    except ValueError as error:
        reading.refuse(f"a line with {visible(str(error)).lower()}", "quotes that close")
        return []
    words = [re.sub("^[\u2010-\u2015\u2212]", "-", word) for word in words]  # what web pages make of hyphens
    if words[:1] == ["$"]:
        words = words[1:]
    if words and (words[0] == "ssh" or words[0].endswith("/ssh")):
        return words[1:]
    if len(words) == 1:
        return words
    got = f"a command that begins with {visible(words[0], 20)}" if words else "nothing"
    reading.refuse(
        got, "ssh user@host -p PORT -i KEY", "copy the SSH command that the provider shows for the pod"
    )
    return []


def _command(words: list[str], reading: _Reading) -> None:
    """Takes options before and after the host; whatever else follows the host is a command to run there."""
    rest = iter(words)
    ended = False
    for word in rest:
        if word == "--" and not ended:
            ended = True
        elif word.startswith("-") and not ended:
            _option(word, rest, reading)
        elif not reading.target and not word.startswith("-"):
            reading.target = word
        elif reading.target:
            reading.refuse(f"`{visible(word, 20)}` after the host", "no command to run there", "leave it out")
            return
        else:
            reading.refuse(f"`{visible(word)}` as the host", "a host, which never begins with a hyphen")
            return
    if reading.target.startswith("ssh://"):
        url, reading.target = reading.target, ""
        _url(url, reading)


def _option(word: str, rest: Iterator[str], reading: _Reading) -> None:
    """Takes one word of options: `-tt`, `-p22`, `-p 22`, `-Np 22`."""
    for i, letter in enumerate(word[1:], 2):
        if letter in _FLAGS:
            reading.ignored.append(f"-{letter}")
            continue
        if letter not in _TAKES_VALUE and letter != "P":
            reading.refuse(f"`{visible(word, 20)}`", "options of ssh", "see `man ssh`")
            return
        value = word[i:] or next(rest, "")
        if not value:
            reading.refuse(f"`-{letter}` with nothing after it", "its value")
        elif letter == "o":
            _named(value, reading)
        elif letter in _USED:
            reading.take(letter, value, f"-{letter} {value}")
        elif letter in _REFUSED:
            reading.refuse(f"`-{letter}`", "a host that is reached as it is written", _ALIAS_HINT)
        else:
            reading.ignored.append(f"-{letter} {value}")
        return


def _named(text: str, reading: _Reading) -> None:
    """Takes `-o Name=value` or `-o 'Name value'`."""
    name, _, value = re.sub(r"\s*=\s*|\s+", "=", text.strip(), count=1).partition("=")
    if (letter := _OPTIONS.get(name.lower())) and value:
        reading.take(letter, value, f"-o {text}")
    elif name.lower() in _HARMLESS.split():
        reading.ignored.append(f"-o {name}")
    else:
        got = f"`-o {visible(name, 40)}`"
        reading.refuse(got, "options that name port, user or key", _ALIAS_HINT)


def _url(text: str, reading: _Reading) -> None:
    found = _URL.fullmatch(text)
    if found is None:
        reading.refuse(f"`{visible(text)}`", "ssh://user@host:port")
        return
    if found["password"]:
        reading.refuse(
            "a password in a URL", "none: only keys are used", "leave it out, and name the key with -i"
        )
        return
    user = unquote(found["user"] or "")
    reading.target = (f"{user}@" if user else "") + found["place"]


def _line(reading: _Reading) -> SshLine:
    """Puts together what was found; what cannot be meant is refused."""
    user, at, place = reading.target.rpartition("@")
    host, port = _host(place)
    if not reading.refusals and not place:
        reading.refuse("no host", "user@host")
    elif place and not (_NAME.fullmatch(host) or _IPV6.fullmatch(host)):
        reading.refuse(f"`{visible(place)}` as the host", "a name or an address")
    if at and not _USER.fullmatch(user):
        reading.refuse(f"`{visible(user)}` as the user", "a user's name")
    if host.lower() == RUNPOD_PROXY:
        hint = "copy the line under `SSH over exposed TCP` of RunPod's Connect page: the pod's own address"
        reading.refuse(RUNPOD_PROXY, "the pod's public TCP endpoint", hint, Label.SHELL_UNUSABLE)
    login = reading.found.get("l")
    if login is not None and not _USER.fullmatch(login):
        reading.refuse(f"`{visible(login)}` as the user", "a user's name")
    if (key := reading.found.get("i")) is not None and key.startswith("-"):
        reading.refuse(f"`{visible(key)}` as the key", "a file")
    return SshLine(
        host=host,
        user=user or login,
        port=_port(reading.found.get("p") or port, reading),
        key=key,
        ignored=tuple(reading.ignored),
    )


def _host(place: str) -> tuple[str, str]:
    """Gives host and port of `host`, `host:port`, `[v6]`, `[v6]:port` and bare `v6`."""
    if place.startswith("["):
        host, _, port = place[1:].partition("]")
        return host, port.removeprefix(":") if port.startswith(":") else port
    if place.count(":") == 1:
        host, _, port = place.partition(":")
        return host, port
    return place, ""


def _port(text: str, reading: _Reading) -> int | None:
    if not text:
        return None
    if _PORT.fullmatch(text) and 1 <= int(text) <= _LAST_PORT:
        return int(text)
    reading.refuse(f"`{visible(text, 20)}` as the port", f"a number from 1 to {_LAST_PORT}")
    return None
