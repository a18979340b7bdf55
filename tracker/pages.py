"""What the tracker's commands say to a person, from the values that queries give. Knows no database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tracker.text import fields, plain, table

if TYPE_CHECKING:
    from tracker.lacking import Open
    from tracker.values import EvidenceLine, ItemLine, RunDetail, RunLine, Status


def status(found: Status) -> str:
    """Milestones with counts per status, runs per state and grade, and the last runs."""
    heads = ("MILESTONE", "TITLE", "PLANNED", "IN PROGRESS", "IMPLEMENTED", "VERIFIED")
    rows = [(m.id, m.title, m.planned, m.in_progress, m.implemented, m.verified) for m in found.milestones]
    parts = [table(heads, rows) if rows else "no programme is loaded; `tracker load FILE` loads one"]
    if found.runs:
        parts.append(table(("RUNS", "GRADE", "COUNT"), [(r.state, r.grade, r.runs) for r in found.runs]))
        parts.append(f"last runs\n{runs(found.last)}")
    else:
        parts.append("no run is recorded; `tracker ingest BUNDLE` takes one in")
    return "\n\n".join(parts)


def runs(found: Sequence[RunLine]) -> str:
    """Runs, a line each."""
    if not found:
        return "no run"
    heads = ("RUN", "LANE", "VERDICT", "GRADE", "STARTED")
    return table(heads, [(r.run_id, r.lane, verdict(r), r.grade, r.started) for r in found])


def verdict(run: RunLine) -> str:
    """The verdict, the state where there is none yet, and what a pass left out."""
    omitted = sorted(run.omitted or ())
    word = run.verdict if run.state != "interrupted" else run.state
    return f"{word or run.state} (omitted: {', '.join(omitted)})" if omitted else (word or run.state)


def ready(found: Sequence[Open]) -> str:
    """Open items, each with what it lacks, the nearest run, and the command."""
    if not found:
        return "nothing is open whose needs are met"
    return "\n\n".join(_ready(each) for each in found)


def _ready(each: Open) -> str:
    near = (
        f"{each.near.run_id}: {'; '.join(each.near.reasons) or 'counts already'}" if each.near else "none yet"
    )
    return f"{plain(each.item.id)}  {plain(each.item.title)}  ({each.item.status})\n" + _indented(
        fields(
            (("lacks", each.lacks), ("nearest", near if each.item.proof else None), ("command", each.command))
        )
    )


def item(found: ItemLine, attached: Sequence[EvidenceLine]) -> str:
    """An item with its proof, needs and evidence."""
    proof = found.proof
    head = fields(
        (
            ("item", found.id),
            ("title", found.title),
            ("milestone", found.milestone),
            ("status", found.status if found.listed else f"{found.status} (no longer in the programme)"),
            ("needs", ", ".join(found.needs)),
            ("proof", f"lane {proof.lane}, grade {proof.grade}" if proof else "asks for none"),
            ("products", ", ".join(proof.products) if proof else None),
        )
    )
    return f"{head}\n\n{evidence(attached)}"


def run(found: RunDetail) -> str:
    """Everything known of a run."""
    line = found.run
    parts = [
        fields(
            (
                ("run", line.run_id),
                ("lane", line.lane),
                ("verdict", verdict(line)),
                ("grade", line.grade),
                ("started", line.started),
                ("ended", line.ended),
                ("plan", found.plan),
                ("system", found.system),
                ("seal", line.seal),
                ("head", found.head and f"{found.head} ({found.records} records)"),
                ("bundle", found.bundle),
            )
        )
    ]
    if found.devices:
        rows = [(d.role, d.node, d.product, d.uuid) for d in found.devices]
        parts.append(table(("ROLE", "NODE", "PRODUCT", "UUID"), rows))
    parts.append(evidence(found.evidence))
    if found.measurements:
        rows_m = [(m.name, m.revision, m.value, m.unit, m.source) for m in found.measurements]
        parts.append(table(("MEASUREMENT", "REVISION", "VALUE", "UNIT", "FROM"), rows_m))
    if found.notes:
        parts.append(table(("NOTE", "EFFECT", "TEXT"), [(n.recorded, n.effect, n.text) for n in found.notes]))
    return "\n\n".join(parts)


def evidence(found: Iterable[EvidenceLine]) -> str:
    """Evidence, a line each."""
    rows = [(e.item, e.run_id, e.lane, e.grade, "yes" if e.counts else "no", e.seal) for e in found]
    return table(("ITEM", "RUN", "LANE", "GRADE", "COUNTS", "SEAL"), rows) if rows else "no evidence"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
