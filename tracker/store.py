"""Opening the database: URL, pragmas, creation, transactions, and SQLite's errors in our words.

Knows the driver, so that its exceptions stop here. Knows no table by name.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from tracker import schema
from tracker.errors import ImmutableError, LockedError, RecordError, StoreError, TrackerError, UsageError

BUSY_TIMEOUT_MS = 20_000
DEFAULT_PATH = "tracker.sqlite3"


def named_url() -> str | None:
    """Give the database that the environment names (`TRACKER_DB`), if it does."""
    return os.environ.get("TRACKER_DB") or None


def default_url(default: str | None = None) -> str:
    """Give the database where none is named: `TRACKER_DB`, else the caller's, else the working folder's."""
    return named_url() or default or DEFAULT_PATH


def sqlite_path(url: str) -> Path:
    """Read a database URL or plain path.

    Raises:
        UsageError: for another database than SQLite, or an URL that names no file.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        path = url
    elif scheme.split("+")[0] == "sqlite":
        path = rest[1:] if rest.startswith("/") and "?" not in rest else ""
    elif scheme.split("+")[0] in {"postgresql", "postgres"}:
        raise UsageError(
            f"PostgreSQL is not built yet (got {scheme}://..., expected sqlite:///PATH or a path)"
        )
    else:
        raise UsageError(f"unknown kind of database (got {scheme}://..., expected sqlite:///PATH or a path)")
    if path in {"", ":memory:"}:
        raise UsageError(f"the database must be a file (got {url!r}, expected sqlite:///PATH or a path)")
    return Path(path)


@dataclass(frozen=True)
class Store:
    """An open tracker database: short reads and short writes, each one transaction."""

    path: Path
    engine: sa.Engine

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Open one consistent view; writers do not stop it, and it stops no writer."""
        with self._transaction(immediate=False) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Open one transaction that holds the write lock from its start (BEGIN IMMEDIATE).

        Raises:
            LockedError: another writer kept the lock for longer than the busy timeout.
            ImmutableError: a trigger or constraint refused.
        """
        with self._transaction(immediate=True) as connection:
            yield connection

    @contextmanager
    def _transaction(self, *, immediate: bool) -> Iterator[sa.Connection]:
        try:
            with (
                self.engine.connect().execution_options(immediate=immediate) as connection,
                connection.begin(),
            ):
                yield connection
        except sa.exc.DBAPIError as error:
            raise _translated(error.orig, self.path) from error
        except (sqlite3.Error, OverflowError, UnicodeEncodeError) as error:
            raise _translated(error, self.path) from error


# a second Ctrl-C while it closes a connection would have it print a traceback
logging.getLogger("sqlalchemy").addHandler(logging.NullHandler())


def open_store(url: str, *, create: bool = True, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> Store:
    """Open a tracker database, making it first where `create` allows it and there is none.

    Raises:
        UsageError: the URL names no SQLite file.
        StoreError: absent, another application's, newer than this program, damaged, or not a database.
    """
    path = sqlite_path(url)
    if not path.exists() and not create:
        raise StoreError(
            f"{path}: there is no tracker database (got no file, expected one; `tracker load FILE` and "
            "`tracker ingest BUNDLE` make one)"
        )
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)),
        poolclass=NullPool,  # a connection never crosses a fork, and none is left holding a lock
        connect_args={"isolation_level": None, "timeout": busy_timeout_ms / 1000},
    )
    sa.event.listen(engine, "connect", _prepare)
    sa.event.listen(engine, "begin", _begin)
    store = Store(path, engine)
    if not _is_ours(store):
        if not create:
            raise StoreError(f"{path}: the file is empty (got no tables, expected a tracker database)")
        _create(store, busy_timeout_ms / 1000)
    return store


def _prepare(connection: Any, _record: object) -> None:
    for pragma in ("foreign_keys = ON", "recursive_triggers = ON", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: sa.Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _is_ours(store: Store) -> bool:
    """Tell a tracker database (True) from an empty file (False).

    Raises:
        StoreError: anything else.
    """
    with store.read() as connection:
        application = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
        version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        empty = connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one() == 0
    if application == 0 and version == 0 and empty:
        return False
    if application != schema.APPLICATION_ID:
        raise StoreError(
            f"{store.path}: not a tracker database (got application_id {application}, "
            f"expected {schema.APPLICATION_ID})"
        )
    if version != schema.USER_VERSION:
        newer = "; a newer orch made it" if version > schema.USER_VERSION else ""
        raise StoreError(
            f"{store.path}: the database is of another version "
            f"(got {version}, expected {schema.USER_VERSION}{newer})"
        )
    return True


def _create(store: Store, patience_s: float) -> None:
    _set_wal(store, time.monotonic() + patience_s)
    with store.write() as connection:
        if connection.exec_driver_sql("PRAGMA user_version").scalar_one() == schema.USER_VERSION:
            return  # another process made it between our look and our lock
        for statement in schema.statements().values():
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        connection.exec_driver_sql(f"PRAGMA user_version = {schema.USER_VERSION}")


def _set_wal(store: Store, until: float) -> None:
    """Switch to write-ahead logging: kept in the file, set outside a transaction, with no busy wait."""
    while True:
        raw = store.engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise _translated(error, store.path) from error
        else:
            return
        finally:
            raw.close()
        time.sleep(0.01)


_REASONS = {
    "SQLITE_NOTADB": "not a database (got other content, expected an SQLite file)",
    "SQLITE_CORRUPT": "the database is damaged; `tracker ingest` rebuilds one from the bundles",
    "SQLITE_READONLY": "the database is read-only (expected permission to write the file and its folder)",
    "SQLITE_CANTOPEN": "the database cannot be opened (expected a readable file in an existing folder)",
    "SQLITE_FULL": "the disk is full (got no room for the database)",
    "SQLITE_IOERR": "the database cannot be read or written (got an input/output error)",
    "SQLITE_PERM": "the database may not be opened (got no permission, expected it)",
}


def _translated(error: BaseException | None, path: Path) -> TrackerError:
    """Put an error of the driver in our words."""
    name = str(getattr(error, "sqlite_errorname", ""))
    said = str(error)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return LockedError(f"{path}: locked by another program (got no lock in time, expected a short wait)")
    if name.startswith("SQLITE_CONSTRAINT_TRIGGER"):
        return ImmutableError(f"{path}: {said.removeprefix('tracker: ')}")
    if name.startswith("SQLITE_CONSTRAINT"):
        return ImmutableError(f"{path}: the record breaks a rule of the database ({said})")
    for code, reason in _REASONS.items():
        if name.startswith(code):
            return StoreError(f"{path}: {reason}")
    if isinstance(error, sqlite3.DataError | sqlite3.InterfaceError | OverflowError | UnicodeEncodeError):
        return RecordError(f"{path}: a value does not fit the database ({said})")
    way = "see `tracker doctor`"
    if said.startswith(("no such column", "no such table")):
        way = "another build made it: move it away, and `tracker load` and `tracker ingest` make it anew"
    return StoreError(f"{path}: the database refused ({said}); {way}")
