"""A command of the user's that connects in our place, as `ProxyCommand` of ssh_config says.

Knows how it is started, filled in and ended. What it carries is for others.
"""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
from typing import Final

from orchestrator.remote.ssh_config import Settings

_END_S: Final = 2.0


class ProxyCommand(socket.socket):
    """The end of a connection of which a command has the other one. Raises OSError if none can start."""

    def __init__(self, settings: Settings) -> None:
        ours, theirs = socket.socketpair()
        super().__init__(fileno=ours.detach())
        tokens = {"h": settings.host, "p": str(settings.port), "r": settings.user, "n": settings.host}
        filled = {token: shlex.quote(value) for token, value in tokens.items()} | {"%": "%"}
        command = re.sub("%([hprn%])", lambda match: filled[match[1]], settings.proxy_command)
        with theirs:
            self._process = subprocess.Popen(
                ["sh", "-c", f"exec {command}"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def close(self) -> None:
        """Hangs up, and ends the command; a second call does nothing."""
        super().close()
        self._process.terminate()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
