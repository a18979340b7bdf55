"""With which keys somebody logs in: the named one alone, else what ssh itself would try.

Knows key files and the agent. Asks nobody for a passphrase; says no path and no comment of a key, since what
is said is recorded.
"""

from __future__ import annotations

import base64
import binascii
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import paramiko

from orchestrator.errors import Label
from orchestrator.remote.base import RemoteError
from orchestrator.remote.ssh_config import Settings

_OLDER_RSA = ("rsa-sha2-512", "rsa-sha2-256")


@dataclass(frozen=True)
class Login:
    """What to log in with.

    Attributes:
        key: the one key; None if others are to be tried.
        files: private keys to try.
        agent: whether those of the agent are tried too.
        without: signatures that are not to be offered.
        held_by: the agent that signs for `key`, to be closed after the login.
    """

    key: paramiko.PKey | None = None
    files: tuple[Path, ...] = ()
    agent: bool = False
    without: tuple[str, ...] = ()
    held_by: paramiko.Agent | None = None

    def close(self) -> None:
        """Lets go of the agent."""
        if self.held_by is not None:
            self.held_by.close()

    def older(self) -> Login | None:
        """The same with a signature that servers of 2014 know; None if that makes no difference.

        Old servers do not say which signatures they know, and refuse the newest one as if the key was wrong.
        """
        if self.without or self.key is None or self.key.get_name() != "ssh-rsa":
            return None
        known = "ssh-rsa" in paramiko.Transport._preferred_pubkeys  # noqa: SLF001  # said nowhere else
        return replace(self, without=_OLDER_RSA if known else _OLDER_RSA[:1])


def login_of(name: str, key: str | None, settings: Settings) -> Login:
    """Gives what to log in with on a node.

    Raises:
        RemoteError: `auth-refused`: the named key cannot be used.
    """
    if key is None:
        usable = tuple(path for path in settings.identities if _is_usable(path))
        return Login(files=usable, agent=not settings.identities_only)
    try:
        path = Path(key).expanduser()
        loaded = paramiko.PKey.from_path(path)
    except (FileNotFoundError, RuntimeError) as error:  # the latter: `~` of somebody who is not here
        raise _refusal(name, "no such file", "the private key that `-i`, or the pods file, names") from error
    except OSError as error:
        raise _refusal(name, str(error.strerror), "a private key that can be read") from error
    except (paramiko.PasswordRequiredException, TypeError) as error:
        held = _held_by_agent(path)
        if held is None:
            expected = "one that needs none, or its key in the agent (`ssh-add`)"
            raise _refusal(name, "a key that needs a passphrase", expected) from error
        return held
    except Exception as error:  # each kind of key fails in its own way
        raise _refusal(name, type(error).__name__, "a private key of OpenSSH") from error
    certificate = path.with_name(path.name + "-cert.pub")
    if certificate.is_file():
        with suppress(Exception):  # the key alone may do
            loaded.load_certificate(str(certificate))
    return Login(key=loaded)


def _is_usable(path: Path) -> bool:
    try:
        paramiko.PKey.from_path(path)
    except Exception:  # noqa: BLE001  # each kind of key fails in its own way, and none of them is to stop us
        return False
    return True


def _held_by_agent(path: Path) -> Login | None:
    """The agent's key of which the public half lies beside the private one."""
    try:
        words = path.with_name(path.name + ".pub").read_text(encoding="utf-8", errors="replace").split()
        wanted = base64.b64decode(words[1])
    except (OSError, IndexError, binascii.Error):
        return None
    with suppress(paramiko.SSHException, OSError):
        agent = paramiko.Agent()
        for key in agent.get_keys():
            if key.asbytes() == wanted:
                return Login(key=key, held_by=agent)
        agent.close()
    return None


def _refusal(name: str, got: str, expected: str) -> RemoteError:
    return RemoteError(f"{name}: its key cannot be used (got {got}, expected {expected})", Label.AUTH_REFUSED)
