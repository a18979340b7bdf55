"""Quantities: exact, and nothing but the notation is taken."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.spec.units import Money, QuantityError, parse_duration, parse_money, parse_price, parse_size


@pytest.mark.parametrize(
    ("text", "milliseconds"), [("250ms", 250), ("10s", 10_000), ("5m", 300_000), ("2h", 7_200_000)]
)
def test_durations(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    ["", "10", "s", "10 s", "-1s", "0s", "1.5h", "10S", "1d", "1h30m", "٣s", " 1s", "1s\n", "9" * 40 + "s"],
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_duration(text)


@given(st.decimals(0, 10**6, places=2))
def test_money_is_exact(amount: Decimal) -> None:
    assert parse_money(f"{amount:.2f} USD") == Money(amount, "USD")
    assert parse_price(f"{amount:.2f} USD/h") == Money(amount, "USD")
    assert str(parse_money(f"{amount:.2f} USD")) == f"{amount:.2f} USD"


@pytest.mark.parametrize(
    "text",
    ["", "2", "USD", "2 usd", "2USD", "-2 USD", "2,50 USD", "2.00  USD", "1e3 USD", "2 USD/h", ".5 USD"],
)
def test_what_is_no_money(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_money(text)


@pytest.mark.parametrize("text", ["0.44 USD", "0.44 USD/s", "0.44 USD/ h", "/h", "0.44 USD/h/h"])
def test_what_is_no_price(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_price(text)


@pytest.mark.parametrize(
    ("text", "size"), [("0 B", 0), ("64 MiB", 64 << 20), ("64MiB", 64 << 20), ("8 GiB", 8 << 30)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["64", "64 MB", "64 mib", "-1 B", "1.5 GiB", "1  B", "MiB"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(QuantityError):
        parse_size(text)
