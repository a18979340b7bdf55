"""Which run a person means: by its id, either end of it, its bundle's name, or `last`.

Reads only. Knows how bundles are named no further than that the name is the last part of their path.
"""

from __future__ import annotations

import difflib
from pathlib import PurePath

import sqlalchemy as sa

from tracker import schema
from tracker.errors import RecordError
from tracker.store import Store

LAST = "last"
"""The run that started last."""

_SHOWN = 3
_NAMED = 12


def run_id(store: Store, said: str) -> str:
    """Give the id of the one run that is meant.

    Args:
        store: the database.
        said: a run id, its beginning or its end (the short id that ends a bundle's name), the name or path of
            a bundle, or `last`.

    Raises:
        RecordError: no run is known by it, or several are.
    """
    with store.read() as connection:
        found = _last(connection) if said == LAST else _known_by(connection, said)
    if len(found) == 1:
        return found[0]
    if found:
        some = ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
        raise RecordError(f"run {said!r}: several are known by that (got {some}, expected one)")
    if said == LAST:
        raise RecordError("run 'last': no run is recorded yet; `tracker ingest BUNDLE` takes one in")
    raise RecordError(
        f"run {said!r}: no run is known by that (got none, expected an id, either end of one, a bundle's "
        "name, or `last`); `tracker run list` lists them"
    )


def neither(store: Store, said: str) -> RecordError:
    """Say that neither an item nor a run is known by a name, and which item was perhaps meant."""
    with store.read() as connection:
        items = (
            connection.execute(sa.select(schema.items.c.item_id).order_by(schema.items.c.position))
            .scalars()
            .all()
        )
    near = difflib.get_close_matches(said, items, n=1, cutoff=0.5)
    if near:
        hint = f"did you mean `{near[0]}`?"
    else:
        some = f"items are {', '.join(items[:_NAMED])}" + (", ..." if len(items) > _NAMED else "")
        hint = f"{some if items else 'no programme is loaded'}, and `tracker run list` lists the runs"
    return RecordError(f"{said!r}: there is neither an item nor a run of that name; {hint}")


def is_run(store: Store, said: str) -> bool:
    """Tell whether one run or several are known by a name."""
    with store.read() as connection:
        return said == LAST or bool(_known_by(connection, said))


def _last(connection: sa.Connection) -> tuple[str, ...]:
    table = schema.runs.c
    newest = sa.select(table.run_id).order_by(table.started.desc(), table.run_id.desc()).limit(1)
    return tuple(connection.execute(newest).scalars())


def _known_by(connection: sa.Connection, said: str) -> tuple[str, ...]:
    """Give the runs known by a name, the id itself before all others."""
    column, places = schema.runs.c.run_id, schema.locations.c
    # the range is a search in the index; only the ends of ids and paths are compared one by one
    begins = sa.select(column).where(column >= said, column < said + "\U0010ffff").order_by(column)
    found = list(connection.execute(begins.limit(_SHOWN + 1)).scalars())
    if said in found:
        return (said,)
    ends = sa.select(column).where(sa.func.substr(column, -max(len(said), 1)) == said)
    name = f"/{PurePath(said).name}"
    placed = sa.select(places.run_id).where(sa.func.substr(places.path, -len(name)) == name)
    for more in (ends, placed):
        found.extend(connection.execute(more.limit(_SHOWN + 1)).scalars())
    return tuple(dict.fromkeys(found)) if said else ()
