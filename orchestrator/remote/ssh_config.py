"""How a user's own ssh would reach a host: `ssh -G` where OpenSSH is at hand, else what can be read without.

Knows ssh_config's words. Connects to nothing and reads no key.
"""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import paramiko

from orchestrator.errors import Label
from orchestrator.remote.base import RemoteError

SSH_PORT = 22
_LAST_PORT = 65535
_DEADLINE_S = 15
_IDENTITIES = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")
_KNOWN_HOSTS = (
    "~/.ssh/known_hosts",
    "~/.ssh/known_hosts2",
    "/etc/ssh/ssh_known_hosts",
    "/etc/ssh/ssh_known_hosts2",
)


@dataclass(frozen=True)
class Settings:
    """A way to one host.

    Attributes:
        host: name or address to connect to.
        port: there.
        user: to be there.
        known_as: what known_hosts calls it, where that is another name.
        identities: files of private keys that are there, in the order to try.
        identities_only: whether keys that only the agent has are left out.
        known_hosts: files to look the host's key up in.
        jumps: hosts to go through, `user@host:port` each, the first to be reached first.
        proxy_command: a command that connects instead; empty for none.
        ignored: what was not taken into account, for people.
    """

    host: str
    port: int
    user: str
    known_as: str = ""
    identities: tuple[Path, ...] = ()
    identities_only: bool = False
    known_hosts: tuple[Path, ...] = ()
    jumps: tuple[str, ...] = ()
    proxy_command: str = ""
    ignored: tuple[str, ...] = ()


def settings_for(host: str, user: str | None, port: int | None) -> Settings:
    """Gives the way to a host; a user or port that is named wins over what the configuration says."""
    said, ignored = _asked(host, user, port) if shutil.which("ssh") else _read(host)
    known_as = said.get("hostkeyalias", ("none",))[0]
    return Settings(
        host=said.get("hostname", (host,))[0],
        port=port or int(said.get("port", (str(SSH_PORT),))[0]),
        user=user or said.get("user", ("",))[0] or _user(host),
        known_as="" if known_as == "none" else known_as,
        identities=_files(said.get("identityfile", _IDENTITIES)),
        identities_only=said.get("identitiesonly", ("no",))[0] == "yes",
        known_hosts=_files(
            said.get("userknownhostsfile", _KNOWN_HOSTS) + said.get("globalknownhostsfile", ())
        ),
        jumps=_jumps(said.get("proxyjump", ("none",))[0]),
        proxy_command=said.get("proxycommand", ("none",))[0].removeprefix("none"),
        ignored=ignored,
    )


def split_host(jump: str) -> tuple[str, str | None, int | None]:
    """Gives host, user and port of `user@host:port`, `[v6]:port` or `ssh://...`."""
    user, _, place = jump.removeprefix("ssh://").rpartition("@")
    if place.startswith("["):
        host, _, port = place[1:].partition("]")
        port = port.removeprefix(":")
    elif place.count(":") == 1:
        host, _, port = place.partition(":")
    else:
        host, port = place, ""
    return host, user or None, int(port) if port.isdecimal() else None


def _asked(
    host: str, user: str | None, port: int | None
) -> tuple[Mapping[str, tuple[str, ...]], tuple[str, ...]]:
    """What `ssh -G` says, each word with its values."""
    named = (*(("-l", user) if user else ()), *(("-p", str(port)) if port else ()))
    try:
        done = subprocess.run(
            ["ssh", "-G", *named, "--", host],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_DEADLINE_S,
            check=True,
            text=True,
            errors="replace",
        )
    except subprocess.CalledProcessError as error:
        return {}, (f"ssh's configuration (`ssh -G` says `{error.stderr.strip()[:200]}`)",)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {}, (f"ssh's configuration (`ssh -G`: {type(error).__name__})",)
    said: dict[str, tuple[str, ...]] = {}
    for line in done.stdout.splitlines():
        word, _, value = line.partition(" ")
        if word in {"userknownhostsfile", "globalknownhostsfile"}:
            said[word] = tuple(value.split())
        else:
            said[word] = (*said.get(word, ()), value)
    return said, ()


def _read(host: str) -> tuple[Mapping[str, tuple[str, ...]], tuple[str, ...]]:
    """What paramiko reads of the user's file; it knows neither Include nor every Match."""
    path = Path("~/.ssh/config").expanduser()
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return {}, ()
    except OSError as error:
        return {}, (f"~/.ssh/config ({error.strerror})",)
    words = {line.split()[0].lower() for line in text.splitlines() if line.split()}
    if "match" in words:  # it may run commands, and is half understood
        return {}, ("~/.ssh/config, which has `Match`, since there is no ssh here to read it",)
    try:
        found = paramiko.SSHConfig.from_text(text).lookup(host)
    except paramiko.SSHException as error:
        return {}, (f"~/.ssh/config, since there is no ssh here to read it ({type(error).__name__})",)
    ignored: tuple[str, ...]
    ignored = ("what ~/.ssh/config includes, since there is no ssh here",) if "include" in words else ()
    said = {word: tuple(value) if isinstance(value, list) else (value,) for word, value in found.items()}
    if not all(port.isdecimal() and 0 < int(port[:6]) <= _LAST_PORT for port in said.get("port", ())):
        ignored += (f"the port that ~/.ssh/config names (got `{said.pop('port')[0]}`, expected a number)",)
    return said, ignored


def _user(host: str) -> str:
    """Who we are here; a container's user need have no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise RemoteError(
            f"{host}: nothing says who to log in as (got no user, expected USER@{host})", Label.AUTH_REFUSED
        ) from error


def _files(names: tuple[str, ...]) -> tuple[Path, ...]:
    """Those that are there, as far as we may look."""
    found = []
    for name in names:
        with suppress(OSError, RuntimeError):
            path = Path(os.path.expandvars(name)).expanduser()
            found += [path] if path.is_file() else []
    return tuple(found)


def _jumps(value: str) -> tuple[str, ...]:
    return () if value.lower() == "none" else tuple(value.split(","))
