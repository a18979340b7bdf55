"""The database's shape: tables, the view of item status, and the triggers that make its rules hold.

The rules stand in the database, so that they hold against any program that opens the file. Each table that
must not be rewritten is WITHOUT ROWID (REPLACE also deletes by rowid) and has BEFORE INSERT triggers beside
those for UPDATE and DELETE: REPLACE and UPSERT run no delete trigger where `recursive_triggers` is off, and
that setting belongs to each connection. So does `ignore_check_constraints`: what must hold is in a trigger,
and a CHECK says the rest. Knows no command and no bundle.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex, CreateTable

APPLICATION_ID = 0x6F726368  # "orch"
USER_VERSION = 1

metadata = sa.MetaData()


def _table(name: str, *parts: sa.schema.SchemaItem) -> sa.Table:
    return sa.Table(name, metadata, *parts, sqlite_strict=True, sqlite_with_rowid=False)


def _text(name: str, *parts: sa.schema.SchemaItem, key: bool = False, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, *parts, primary_key=key, nullable=null)


def _whole(name: str, *, key: bool = False, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, primary_key=key, nullable=null, autoincrement=False)


def _hex(name: str) -> str:
    return f"length({name}) = 64 AND {name} NOT GLOB '*[^0-9a-f]*'"


def _verdict_of(state: str) -> str:
    return (
        f"CASE {state} WHEN 'completed' THEN 'pass' WHEN 'failed' THEN 'fail' "
        "WHEN 'unknown' THEN 'unknown' WHEN 'interrupted' THEN 'unknown' END"
    )


_DECLARED = "declared IN ('planned', 'in-progress', 'implemented')"

milestones = _table(
    "milestones",
    _text("milestone", key=True),
    _text("title"),
    _whole("position"),
    _whole("listed"),
    sa.CheckConstraint("listed IN (0, 1)"),
)

items = _table(
    "items",
    _text("item_id", key=True),
    _text("title"),
    _text("milestone", sa.ForeignKey("milestones.milestone")),
    _text("declared"),
    _text("proof_lane", null=True),
    _text("proof_grade", null=True),
    _text("proof_system", null=True),
    _text("proof_plan", null=True),
    _whole("position"),
    _whole("listed"),
    sa.CheckConstraint(_DECLARED),
    sa.CheckConstraint("proof_grade IN ('host', 'emulated', 'simulated', 'physical')"),
    sa.CheckConstraint("(proof_lane IS NULL) = (proof_grade IS NULL)"),
    sa.CheckConstraint("proof_lane IS NOT NULL OR (proof_system IS NULL AND proof_plan IS NULL)"),
    sa.CheckConstraint(f"{_hex('proof_system')} AND {_hex('proof_plan')}"),
    sa.CheckConstraint("listed IN (0, 1)"),
)

item_products = _table(
    "item_products",
    _text("item_id", sa.ForeignKey("items.item_id"), key=True),
    _text("product", key=True),
    _whole("cards"),
    sa.CheckConstraint("cards > 0"),
)

dependencies = _table(
    "dependencies",
    _text("item_id", sa.ForeignKey("items.item_id"), key=True),
    _text("need", sa.ForeignKey("items.item_id"), key=True),
)

experiments = _table("experiments", _text("lane", key=True), _text("recorded"))

runs = _table(
    "runs",
    _text("run_id", key=True),
    _text("lane", sa.ForeignKey("experiments.lane")),
    _text("state"),
    _text("verdict", null=True),
    _text("grade", null=True),
    _text("plan"),
    _text("system"),
    _text("started"),
    _text("ended", null=True),
    _text("omitted", null=True),
    _text("seal", null=True),
    _text("head", null=True),
    _whole("records", null=True),
    _text("content_sha256", null=True),
    _text("judge", null=True),
    _text("judged", null=True),
    _text("parent_seal", null=True),
    _text("recorded"),
    _text("host_sha256", null=True),
    _whole("pid", null=True),
    _text("boot_id", null=True),
    _text("process_start", null=True),
    sa.CheckConstraint("length(run_id) > 0"),
    sa.CheckConstraint("state IN ('running', 'completed', 'failed', 'unknown', 'interrupted')"),
    sa.CheckConstraint(f"verdict IS {_verdict_of('state')}"),
    sa.CheckConstraint("grade IN ('host', 'emulated', 'simulated', 'physical')"),
    sa.CheckConstraint(f"{_hex('plan')} AND {_hex('system')}"),
    sa.CheckConstraint(
        "CASE WHEN state IN ('running', 'interrupted') THEN seal IS NULL "
        f"ELSE seal IS NOT NULL AND {_hex('seal')} AND head IS NOT NULL AND {_hex('head')} "
        "AND ifnull(records, 0) > 0 AND grade IS NOT NULL "
        "AND omitted IS NOT NULL AND ended IS NOT NULL AND judged IS NOT NULL END"
    ),
    sa.Index("runs_by_start", "started", "run_id"),
    sa.Index("runs_by_lane", "lane", "started"),
    sa.Index("runs_by_state", "state", "grade", "started"),
)

locations = _table(
    "locations",
    _text("run_id", sa.ForeignKey("runs.run_id"), key=True),
    _whole("revision", key=True),
    _text("path"),
    _text("recorded"),
)

devices = _table(
    "devices",
    _text("run_id", sa.ForeignKey("runs.run_id"), key=True),
    _text("role", key=True),
    _text("node"),
    _text("product"),
    _text("uuid"),
    _whole("minor", null=True),
    _text("profile", null=True),
    _text("driver", null=True),
    sa.CheckConstraint("length(product) > 0 AND length(uuid) > 0"),
    sa.Index("devices_by_product", "product", "run_id"),
)

evidence = _table(
    "evidence",
    _text("item_id", sa.ForeignKey("items.item_id"), key=True),
    _text("run_id", sa.ForeignKey("runs.run_id"), key=True),
    _text("proof"),
    _text("recorded"),
    sa.Index("evidence_by_run", "run_id"),
)

measurements = _table(
    "measurements",
    _text("run_id", sa.ForeignKey("runs.run_id"), key=True),
    _text("name", key=True),
    _whole("revision", key=True),
    sa.Column("value", sa.REAL, nullable=False),
    _text("unit"),
    _text("source"),
    _text("recorded"),
    sa.CheckConstraint("source IN ('bundle', 'person')"),
    sa.Index("measurements_by_name", "name", "value"),
)

run_notes = _table(
    "run_notes",
    _text("run_id", sa.ForeignKey("runs.run_id"), key=True),
    _whole("revision", key=True),
    _text("effect"),
    _text("text"),
    _text("recorded"),
    sa.CheckConstraint("effect IN ('note', 'withdraw', 'reinstate')"),
    sa.CheckConstraint("length(text) > 0"),
)

_WITHDRAWN = (
    "'withdraw' IS (SELECT n.effect FROM run_notes AS n WHERE n.run_id = r.run_id AND n.effect <> 'note' "
    "ORDER BY n.revision DESC LIMIT 1)"
)

COUNTS = f"""r.state = 'completed' AND r.verdict = 'pass' AND r.omitted = '{{}}'
  AND r.seal IS NOT NULL AND r.head IS NOT NULL AND r.judged IS NOT NULL
  AND r.lane = i.proof_lane AND r.grade = i.proof_grade
  AND r.system = ifnull(i.proof_system, r.system) AND r.plan = ifnull(i.proof_plan, r.plan)
  AND (r.grade <> 'physical' OR EXISTS (SELECT 1 FROM devices AS d WHERE d.run_id = r.run_id))
  AND NOT EXISTS (SELECT 1 FROM item_products AS p WHERE p.item_id = i.item_id AND p.cards >
    (SELECT count(DISTINCT d.uuid) FROM devices AS d WHERE d.run_id = r.run_id AND d.product = p.product))
  AND NOT {_WITHDRAWN}"""  # noqa: S608  (a constant made of constants)
"""When run `r` counts for item `i`: the one statement of it, in triggers, in the view and in matching."""

# CROSS JOIN keeps SQLite from walking all runs of a lane for each item without evidence.
ITEM_STATUS = f"""CREATE VIEW item_status AS
SELECT i.item_id AS item_id, CASE WHEN i.listed = 1 AND EXISTS (
  SELECT 1 FROM evidence AS e CROSS JOIN runs AS r ON r.run_id = e.run_id
  WHERE e.item_id = i.item_id AND {COUNTS})
THEN 'verified' ELSE i.declared END AS status
FROM items AS i"""  # noqa: S608  (a constant made of constants)

item_status = sa.table("item_status", sa.column("item_id", sa.Text), sa.column("status", sa.Text))


def _trigger(name: str, when: str, message: str, condition: str = "") -> tuple[str, str]:
    guard = f" WHEN {condition}" if condition else ""
    body = f"SELECT RAISE(ABORT, 'tracker: {message}');"
    return name, f"CREATE TRIGGER {name} BEFORE {when}{guard}\nBEGIN {body} END"


def _append_only(table: str, key: str, what: str) -> tuple[tuple[str, str], ...]:
    """Triggers of a table to which revisions are added, each one past the last, and nothing else happens."""
    expected = f"(SELECT ifnull(max(revision), 0) + 1 FROM {table} WHERE {key})"  # noqa: S608  (constants)
    return (
        _trigger(
            f"{table}_insert",
            f"INSERT ON {table}",
            f"{what} are only added",
            f"NEW.revision IS NOT {expected}",
        ),
        *_frozen(table, what),
    )


def _frozen(table: str, what: str) -> tuple[tuple[str, str], ...]:
    return (
        _trigger(f"{table}_update", f"UPDATE ON {table}", f"{what} are never changed"),
        _trigger(f"{table}_delete", f"DELETE ON {table}", f"{what} are never deleted"),
    )


TRIGGERS: dict[str, str] = dict(
    (
        _trigger(
            "runs_insert_again",
            "INSERT ON runs",
            "a run is recorded once and never replaced",
            "EXISTS (SELECT 1 FROM runs WHERE run_id = NEW.run_id)",
        ),
        _trigger("runs_insert_begun", "INSERT ON runs", "a run begins as running", "NEW.state <> 'running'"),
        _trigger(
            "runs_update_terminal",
            "UPDATE ON runs",
            "a terminal run is never changed",
            "OLD.state <> 'running'",
        ),
        _trigger(
            "runs_update_identity",
            "UPDATE ON runs",
            "a run keeps its run id, lane, plan and system",
            "NEW.run_id <> OLD.run_id OR NEW.lane <> OLD.lane "
            "OR NEW.plan <> OLD.plan OR NEW.system <> OLD.system",
        ),
        _trigger(
            "runs_update_physical",
            "UPDATE ON runs",
            "a physical pass needs its devices bound",
            "NEW.state = 'completed' AND NEW.grade = 'physical' "
            "AND NOT EXISTS (SELECT 1 FROM devices WHERE run_id = NEW.run_id)",
        ),
        _trigger(
            "runs_update_sealed",
            "UPDATE ON runs",
            "a run ends with the verdict of its state, judged, and with its seal, head and records",
            f"NEW.state <> 'running' AND (NEW.verdict IS NOT {_verdict_of('NEW.state')} OR "
            "NEW.state <> 'interrupted' "
            "AND (NEW.seal IS NULL OR NEW.head IS NULL OR NEW.judged IS NULL OR ifnull(NEW.records, 0) < 1))",
        ),
        _trigger("runs_delete", "DELETE ON runs", "runs are never deleted"),
        _trigger(
            "devices_insert",
            "INSERT ON devices",
            "devices are bound once, while their run is running",
            "'running' IS NOT (SELECT state FROM runs WHERE run_id = NEW.run_id) "
            "OR EXISTS (SELECT 1 FROM devices WHERE run_id = NEW.run_id AND role = NEW.role)",
        ),
        *_frozen("devices", "bound devices"),
        _trigger(
            "evidence_insert_again",
            "INSERT ON evidence",
            "evidence is recorded once and never replaced",
            "EXISTS (SELECT 1 FROM evidence WHERE item_id = NEW.item_id AND run_id = NEW.run_id)",
        ),
        _trigger(
            "evidence_insert_counts",
            "INSERT ON evidence",
            "evidence needs a judged, sealed pass of the lane, grade, system, plan and products asked for",
            "NOT EXISTS (SELECT 1 FROM runs AS r, items AS i "  # noqa: S608  (constants)
            f"WHERE r.run_id = NEW.run_id AND i.item_id = NEW.item_id AND {COUNTS})",
        ),
        *_frozen("evidence", "evidence records"),
        *_append_only("measurements", "run_id = NEW.run_id AND name = NEW.name", "measurements"),
        *_append_only("run_notes", "run_id = NEW.run_id", "notes on a run"),
        *_append_only("locations", "run_id = NEW.run_id", "places of a bundle"),
        *(
            _trigger(
                f"items_{change.lower()}_declared",
                f"{change} ON items",
                "verified is proven, never declared",
                f"NOT NEW.{_DECLARED}",
            )
            for change in ("INSERT", "UPDATE")
        ),
        _trigger(
            "items_rename", "UPDATE ON items", "an item keeps its identifier", "NEW.item_id <> OLD.item_id"
        ),
        _trigger("items_delete", "DELETE ON items", "items are never deleted, only left out of the list"),
        _trigger(
            "dependencies_cycle",
            "INSERT ON dependencies",
            "dependency-cycle: an item would need itself",
            "EXISTS (WITH RECURSIVE up(item) AS (SELECT NEW.need UNION SELECT d.need FROM dependencies AS d "
            "JOIN up ON d.item_id = up.item) SELECT 1 FROM up WHERE item = NEW.item_id)",
        ),
        _trigger(
            "dependencies_update", "UPDATE ON dependencies", "a dependency is added or removed, not changed"
        ),
    )
)


def statements() -> dict[tuple[str, str], str]:
    """Give the SQL of every object by its (type, name) in SQLite's list, in an order that can be executed."""
    from sqlalchemy.dialects.sqlite import dialect

    made: dict[tuple[str, str], str] = {}
    for table in metadata.sorted_tables:
        made["table", table.name] = str(CreateTable(table).compile(dialect=dialect())).strip()
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            made["index", str(index.name)] = str(CreateIndex(index).compile(dialect=dialect())).strip()
    made["view", "item_status"] = ITEM_STATUS
    made.update({("trigger", name): sql for name, sql in TRIGGERS.items()})
    return made
