"""What the tracker's commands say to a person, from the values that queries give. Knows no database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tracker.text import counted, fields, plain, second, short, table

if TYPE_CHECKING:
    from tracker.lacking import Open
    from tracker.values import EvidenceLine, ItemLine, RunDetail, RunLine, Status


NO_PROGRAMME = "no programme is loaded; `tracker load FILE` loads one"


def status(found: Status) -> str:
    """Milestones with counts per status, runs per state and grade, and the last runs."""
    heads = ("MILESTONE", "TITLE", "PLANNED", "IN PROGRESS", "IMPLEMENTED", "VERIFIED")
    rows = [(m.id, m.title, m.planned, m.in_progress, m.implemented, m.verified) for m in found.milestones]
    parts = [table(heads, rows) if rows else NO_PROGRAMME]
    parts.extend(_several(each.item, each.plans) for each in found.several_plans)
    if found.runs:
        parts.append(table(("STATE", "GRADE", "RUNS"), [(r.state, r.grade, r.runs) for r in found.runs]))
        parts.append(f"last runs\n{runs(found.last)}")
    else:
        parts.append("no run is recorded; `tracker ingest BUNDLE` takes one in")
    return "\n\n".join(parts)


def runs(found: Sequence[RunLine]) -> str:
    """Runs, a line each."""
    if not found:
        return "no run"
    heads = ("RUN", "LANE", "VERDICT", "GRADE", "STARTED")
    return table(heads, [(r.run_id, r.lane, verdict(r), r.grade, second(r.started)) for r in found])


def verdict(run: RunLine) -> str:
    """The verdict, the state where there is none yet, and what a pass left out."""
    omitted = sorted(run.omitted or ())
    word = run.verdict if run.state != "interrupted" else run.state
    return f"{word or run.state} (omitted: {', '.join(omitted)})" if omitted else (word or run.state)


def ready(found: Sequence[Open], *, loaded: bool) -> str:
    """Open items, each with what it lacks, the nearest run, and what to do."""
    if not found:
        return "nothing is open whose needs are met" if loaded else NO_PROGRAMME
    return "\n\n".join(_ready(each) for each in found)


def _ready(each: Open) -> str:
    near = (
        f"{each.near.run_id}: {'; '.join(each.near.reasons) or 'counts already'}" if each.near else "none yet"
    )
    return f"{plain(each.item.id)}  {plain(each.item.title)}  ({each.item.status})\n" + _indented(
        fields(
            (
                ("lacks", each.lacks),
                ("nearest", near if each.item.proof else None),
                *(("first", step) for step in each.first),
                ("command", each.command),
            )
        )
    )


def item(found: ItemLine, attached: Sequence[EvidenceLine]) -> str:
    """An item with its proof, needs and evidence."""
    proof = found.proof
    plans = len({each.plan for each in attached if each.counts})
    head = fields(
        (
            ("item", found.id),
            ("title", found.title),
            ("milestone", found.milestone),
            ("status", found.status if found.listed else f"{found.status} (no longer in the programme)"),
            ("needs", ", ".join(found.needs)),
            ("proof", f"lane {proof.lane}, grade {proof.grade}" if proof else "asks for none"),
            ("products", ", ".join(proof.products) if proof else None),
            ("plan", proof.plan if proof else None),
            ("system", proof.system if proof else None),
        )
    )
    return "\n\n".join([head, evidence(attached)] + ([_several(found.id, plans)] if plans > 1 else []))


def _several(item: str, plans: int) -> str:
    return (
        f"warning: {plain(item)}: its evidence is of {counted(plans, 'plan')}; "
        "`plan:` in its proof says which one is meant (`orch plan LANE --json` gives it)"
    )


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
                ("judged by", found.judged),
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
        parts.append(
            table(("NOTE", "EFFECT", "TEXT"), [(second(n.recorded), n.effect, n.text) for n in found.notes])
        )
    return "\n\n".join(parts)


def evidence(found: Iterable[EvidenceLine]) -> str:
    """Evidence, a line each."""
    heads = ("ITEM", "RUN", "LANE", "GRADE", "COUNTS", "PLAN", "SYSTEM", "SEAL")
    rows = [
        (
            e.item,
            e.run_id,
            e.lane,
            e.grade,
            "yes" if e.counts else "no",
            *map(short, (e.plan, e.system, e.seal)),
        )
        for e in found
    ]
    return table(heads, rows) if rows else "no evidence"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
