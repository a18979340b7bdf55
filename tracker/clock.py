"""The time as the database keeps it."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> str:
    """Give the time as RFC 3339 in UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
