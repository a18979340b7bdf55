"""A choice of what a test is run with: `make test` takes it, `make test-all` takes everything.

A choice leaves every kind of fault, and every place that one may strike at, at least one test.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def some(values: Iterable[Any], chosen: Callable[[Any], bool]) -> list[Any]:
    """All values; those that are not chosen are marked as `more`."""
    return [value if chosen(value) else _more(value) for value in values]


def each(number: int, values: Iterable[Any]) -> list[Any]:
    """All values; but for the first and every `number`-th after it they are marked as `more`."""
    return [value if index % number == 0 else _more(value) for index, value in enumerate(values)]


def examples(few: int, many: int) -> int:
    """How many examples Hypothesis makes up."""
    return many if "ORCH_TEST_ALL" in os.environ else few


def _more(value: Any) -> Any:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.more)
