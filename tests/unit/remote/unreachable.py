"""A way to a node that can be taken away and given back, for tests of what is around a Remote."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from orchestrator.remote.around import Around
from orchestrator.remote.base import Remote, UnreachableError

T = TypeVar("T")


class Breaking(Around):
    """Reaches nobody for the next `misses` requests, whether or not they were carried out."""

    def __init__(self, inner: Remote) -> None:
        super().__init__(inner)
        self.misses = 0
        self.asked: list[str] = []
        self.does_act = False  # whether the request arrived, and only its answer is lost

    def _ask(self, what: str, request: Callable[[], T]) -> T:
        self.asked.append(what)
        if self.misses:
            self.misses -= 1
            if self.does_act:
                request()
            raise UnreachableError(f"{self.name}: the wire is cut")
        return request()


@dataclass
class Journal:
    """Events as they came."""

    events: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def __call__(self, kind: str, data: Mapping[str, Any]) -> None:
        self.events.append((kind, data))

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.events]

    def data(self, kind: str) -> Mapping[str, Any]:
        (found,) = [data for name, data in self.events if name == kind]
        return found
