"""A node that is given up: nothing is asked of it, and every request ends as one to a lost node does.

For a run that is to be sealed although its pod is gone for good.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from orchestrator.errors import Label
from orchestrator.remote.around import Around
from orchestrator.remote.base import NodeLostError
from orchestrator.remote.local import Local

T = TypeVar("T")


class GivenUp(Around):
    """A node by name alone."""

    def __init__(self, name: str) -> None:
        super().__init__(Local(name))  # to name the requests by; none of them gets there

    def _ask(self, what: str, request: Callable[[], T]) -> T:
        del what, request
        raise NodeLostError(f"{self.name}: the node is given up, and nothing is asked of it", Label.NODE_LOST)

    def close(self) -> None:
        """Nothing is open."""
