"""Quantities with their units, as users write them: durations, money, prices, byte sizes.

Knows the notation of each and how it is told wrong; must not know which key holds one. Amounts are exact:
milliseconds, bytes and decimal amounts, never binary fractions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from orchestrator.errors import Label
from orchestrator.spec.places import visible

_DURATION = r"([0-9]{1,9})(ms|s|m|h)"
_MONEY = r"([0-9]{1,9}(?:\.[0-9]{1,4})?) ([A-Z]{3})"
_SIZE = r"([0-9]{1,15}) ?(B|KiB|MiB|GiB|TiB)"
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


@dataclass(frozen=True)
class Money:
    """An amount of one currency.

    Attributes:
        amount: exact, as written.
        currency: three capital letters (ISO 4217).
    """

    amount: Decimal
    currency: str

    def __str__(self) -> str:
        return f"{self.amount} {self.currency}"


class QuantityError(ValueError):
    """A text that is no quantity of the kind that was asked for."""


def complain(label: Label, message: str, hint: str = "") -> PydanticCustomError:
    """Makes the error that a validator raises, so that its label and words come through as they are."""
    return PydanticCustomError("orch", "{message}", {"label": label.value, "message": message, "hint": hint})


def parse_duration(text: str) -> int:
    """Gives the milliseconds of `10s`, `5m` or the like; raises QuantityError for anything else or zero."""
    match = re.fullmatch(_DURATION, text, re.ASCII)
    if match is None or int(match[1]) == 0:
        raise QuantityError(text)
    return int(match[1]) * _MILLISECONDS[match[2]]


def parse_money(text: str) -> Money:
    """Gives the amount of `2.00 USD`; raises QuantityError for anything else."""
    match = re.fullmatch(_MONEY, text, re.ASCII)
    if match is None:
        raise QuantityError(text)
    return Money(Decimal(match[1]), match[2])


def parse_price(text: str) -> Money:
    """Gives the amount per hour of `0.44 USD/h`; raises QuantityError for anything else."""
    if not text.endswith("/h"):
        raise QuantityError(text)
    return parse_money(text.removesuffix("/h"))


def parse_size(text: str) -> int:
    """Gives bytes of `64 MiB`; raises QuantityError for anything else."""
    match = re.fullmatch(_SIZE, text, re.ASCII)
    if match is None:
        raise QuantityError(text)
    return int(match[1]) * _BYTES[match[2]]


def _reader(parse: Any, expected: str) -> Any:
    def read(value: Any) -> Any:
        if not isinstance(value, str):
            raise complain(Label.VALUE_TYPE, f"(got {describe(value)}, expected {expected})")
        try:
            return parse(value)
        except QuantityError:
            raise complain(Label.VALUE_FORMAT, f"(got `{visible(value)}`, expected {expected})") from None

    return read


def describe(value: Any) -> str:
    """Says what a wrong value is, for the "got" of a message."""
    if isinstance(value, str):
        return f"the text `{visible(value)}`"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return visible(repr(value), 30)


def _schema(pattern: str, *examples: str) -> WithJsonSchema:
    pattern = "^" + pattern.replace("(?:", "(") + "$"
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": list(examples)})


Milliseconds = Annotated[
    int,
    BeforeValidator(_reader(parse_duration, "a duration such as 250ms, 10s, 5m or 2h")),
    _schema(_DURATION, "250ms", "10s", "5m", "2h"),
]
"""A duration, in whole milliseconds."""

Amount = Annotated[
    Money, PlainValidator(_reader(parse_money, "an amount such as 2.00 USD")), _schema(_MONEY, "2.00 USD")
]
"""An amount of money."""

Price = Annotated[
    Money,
    PlainValidator(_reader(parse_price, "a price such as 0.44 USD/h")),
    _schema(_MONEY + "/h", "0.44 USD/h"),
]
"""An amount of money per hour."""

Size = Annotated[
    int, BeforeValidator(_reader(parse_size, "a size such as 64 MiB")), _schema(_SIZE, "64 MiB", "8 GiB")
]
"""A size of memory, in bytes."""
