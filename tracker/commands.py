"""What each command of `tracker` does: one function per command, from arguments to an answer.

Prints nothing and parses nothing. Imports the database library only inside the functions, so that help stays
fast.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tracker.engine import Engine
from tracker.errors import BundleError

if TYPE_CHECKING:
    from tracker.store import Store


@dataclass(frozen=True)
class Answer:
    """What a command says: as text, as JSON, by its exit code, and what it complains of."""

    text: str
    value: Any
    code: int = 0
    complaints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """A command's arguments, with the engine's part."""

    arguments: argparse.Namespace
    engine: Engine

    def store(self, *, create: bool = False) -> Store:
        """Open the database that was asked for."""
        from tracker.store import named_url, open_store

        return open_store(self.arguments.db or named_url() or self.engine.default_db(), create=create)

    def run(self, store: Store) -> str:
        """Give the id of the run that was asked for."""
        from tracker.names import run_id

        return run_id(store, self.arguments.id)


def load(call: Call) -> Answer:
    """Make a programme file the one kept."""
    from tracker.load import load as keep
    from tracker.text import counted

    done = keep(call.store(create=True), call.engine.read_programme(call.arguments.file))
    lines = [f"{counted(done.milestones, 'milestone')}, {counted(done.items, 'item')}"]
    for word, names in (
        ("verified by recorded runs", done.verified),
        ("no longer verified: the evidence does not meet the new proof", done.reopened),
        ("no longer in the programme, kept", done.unlisted),
    ):
        lines.extend([f"{word}: {', '.join(names)}"] if names else [])
    return Answer("\n".join(lines), asdict(done))


def status(call: Call) -> Answer:
    """The programme at a glance."""
    from tracker import pages, query

    found = query.status(call.store())
    return Answer(pages.status(found), asdict(found))


def next_items(call: Call) -> Answer:
    """What to do next."""
    from tracker import lacking, pages, query

    store = call.store()
    found = lacking.next_items(store, call.engine.lane_file)
    loaded = query.has_programme(store)
    value = {"programme": loaded, "items": [asdict(each) for each in found]}
    return Answer(pages.ready(found, loaded=loaded), value)


def show(call: Call) -> Answer:
    """An item, else a run."""
    from tracker import names, pages, query

    store, said = call.store(), call.arguments.id
    found = query.item(store, said)
    if found is None:
        if not names.is_run(store, said):
            raise names.neither(store, said)
        return run_show(call)
    item, attached = found
    value = {"item": asdict(item), "evidence": [asdict(each) for each in attached]}
    return Answer(pages.item(item, attached), value)


def run_list(call: Call) -> Answer:
    """Runs, newest first."""
    from tracker import pages, query

    wanted = call.arguments
    found = query.runs(
        call.store(), lane=wanted.lane, verdict=wanted.verdict, grade=wanted.grade, limit=wanted.limit
    )
    return Answer(pages.runs(found), {"runs": [asdict(each) for each in found]})


def run_show(call: Call) -> Answer:
    """Everything known of a run."""
    from tracker import pages, query

    found = query.run(call.store(), call.arguments.id)
    return Answer(pages.run(found), asdict(found))


def run_close(call: Call) -> Answer:
    """Give up a run that was left running."""
    from tracker import record

    store = call.store()
    run = call.run(store)
    record.close_run(store, run, call.arguments.text)
    return Answer(f"{run} interrupted", {"run_id": run, "state": "interrupted"})


def note(call: Call) -> Answer:
    """Add a note to a run, which may withdraw or reinstate its evidence."""
    from tracker import beside

    store, effect = call.store(), call.arguments.effect
    run = call.run(store)
    beside.note(store, run, call.arguments.text, effect)
    return Answer(f"{run} {effect}: {call.arguments.text}", {"run_id": run, "effect": effect})


def evidence_list(call: Call) -> Answer:
    """All evidence."""
    from tracker import pages, query

    found = query.evidence(call.store())
    return Answer(pages.evidence(found), {"evidence": [asdict(each) for each in found]})


def measure(call: Call) -> Answer:
    """Add a measurement beside a run."""
    from tracker import beside

    store, given = call.store(), call.arguments
    run = call.run(store)
    revision = beside.measure(store, run, given.name, given.value, given.unit)
    told = {"name": given.name, "value": given.value, "unit": given.unit, "revision": revision}
    said = f"{run} {given.name} = {given.value} {given.unit}".rstrip() + f" (revision {revision})"
    return Answer(said, {"run_id": run, **told})


def ingest(call: Call) -> Answer:
    """Verify, judge and record bundles."""
    from tracker.record import ingest as take

    bundles = [call.engine.find_bundle(said) for said in call.arguments.bundles]
    store = call.store(create=True)
    lines, done, refused, complaints = [], [], [], []
    for bundle in bundles:
        try:
            recorded = take(store, bundle, call.engine.judge)
        except BundleError as error:
            complaints.append(str(error))
            refused.append({"bundle": str(bundle), "problems": error.problems})
            continue
        proves = f", evidence for {', '.join(recorded.items)}" if recorded.items else ""
        known = "" if recorded.new else " (known)"
        lines.append(f"{recorded.run_id} {recorded.lane} {recorded.verdict} {recorded.grade}{known}{proves}")
        done.append(asdict(recorded))
    value = {"recorded": done, "refused": refused}
    return Answer("\n".join(lines), value, 1 if refused else 0, tuple(complaints))


def doctor(call: Call) -> Answer:
    """Look for what is wrong."""
    from tracker.doctor import examine, unrecorded

    given, store = call.arguments, call.store()
    judge = call.engine.judge if given.judge else None
    found = examine(store, bundles=given.bundles or given.judge, judge=judge)
    notes = [
        f"{bundle}: sealed, and no run here came from it; `tracker ingest` takes it in"
        for bundle in (unrecorded(store, call.engine.bundles()) if given.bundles else ())
    ]
    lines = [f"{finding.subject}: {finding.message}" for finding in found] or ["healthy"]
    value = {"findings": [asdict(finding) for finding in found], "notes": notes}
    text = "\n".join((*lines, *(f"note: {note}" for note in notes)))
    return Answer(text, value, 1 if found else 0)
