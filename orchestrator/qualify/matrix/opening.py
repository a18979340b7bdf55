"""A matrix's bundle, opened: made anew with every cell's files in it, or taken up where it was left.

Reads and refuses; reaches no node. Where a cell runs, and that every device role of it gets a card, is said
here before any cell is begun.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from evidence.canonical import dumps
from evidence.files import write_whole
from orchestrator.errors import Label, Refusal, RefusedError, UsageError, Where
from orchestrator.plan.matrix import matrix_plan
from orchestrator.qualify import bundles
from orchestrator.qualify.matrix.view import BEGUN, CELLS, LANE, cell_files, chosen
from orchestrator.qualify.opening import cards_of
from orchestrator.qualify.options import RunOptions
from orchestrator.qualify.view import LOCAL, SIMULATED
from orchestrator.spec.matrix import Cell, MatrixSpec
from orchestrator.spec.read import files, read_any_lane, read_lane

_WAYS = (
    f"`--pods {SIMULATED}` runs on stand-ins, `--only` names the cells that this machine can run; "
    "a cell's lane.yaml, which is in the bundle of such a run, takes `--pods FILE`"
)


def open_matrix(options: RunOptions) -> bundles.Opened:
    """Makes a bundle, or takes one up.

    Raises:
        RefusedError: the matrix, a plan that it needs, its place or the bundle is refused; nothing was begun.
    """
    if options.pods is not None and str(options.pods) not in (LOCAL, SIMULATED):
        message = f"a matrix runs on this machine alone (got {options.pods}, expected {LOCAL} or {SIMULATED})"
        hint = "a cell's lane.yaml, which is in the bundle, runs anywhere by itself"
        raise RefusedError([Refusal(Label.PODS_UNSUPPORTED, message, Where(str(options.pods)), hint=hint)])
    if options.resume is not None:
        return _reopen(options, options.resume)
    if options.lane is None:
        raise UsageError("a lane file or --resume is needed")
    spec = read_any_lane(options.lane)
    if not isinstance(spec, MatrixSpec):
        raise UsageError(f"{options.lane} is a lane over one run, not a matrix")
    if found := options.secrets.refusals(files(options.lane)):
        raise RefusedError(found)
    if not chosen(spec, options.only):
        raise UsageError(f"no cell is named so (got {', '.join(options.only)}, expected such as */*/all)")
    first = {
        "content_sha256": options.content.digest,
        "keep": options.keep,
        "only": list(options.only),
        "owner": options.owner,
        "pods": SIMULATED if options.pods else LOCAL,
        "remote_root": "",
    }
    return bundles.begin(
        options.bundles, spec.name, lambda hidden: _fill(spec.path, hidden, options), BEGUN, first
    )


def _fill(lane: Path, bundle: Path, options: RunOptions) -> None:
    """Puts specs, plan and every cell's files into a new bundle; from here on the copies are what counts."""

    def read_back(copy: Path, specs: Path) -> None:
        spec = read_any_lane(copy, within=specs)
        if not isinstance(spec, MatrixSpec):
            raise UsageError(f"{lane} changed while it was read")
        plan = matrix_plan(spec)
        cells = tuple(cell for cell in chosen(spec, options.only) if cell in plan.plans)
        if not cells:
            named = ", ".join(options.only)
            raise UsageError(f"no cell that is named so is admitted (got {named}; see `orch plan`)")
        write_whole(bundle / "plan.json", dumps(plan.file_json()))
        for cell in spec.cells:
            for name, data in cell_files(spec, bundle, cell).items():
                (bundle / name).parent.mkdir(parents=True, exist_ok=True)
                write_whole(bundle / name, data)
        _cards(spec, cells, bundle, options)

    bundles.copy_specs(lane, bundle, read_back)


def _cards(spec: MatrixSpec, cells: tuple[Cell, ...], bundle: Path, options: RunOptions) -> None:
    """Refuses cells whose device roles get no card; those of one shape need the same, so one tells."""
    shapes = {cell.shape: cell for cell in reversed(cells) if spec.shapes[cell.shape].has_devices}
    # without a device role, and stand-ins asked for, the first cell says that there is nothing to simulate
    asked = shapes.values() or (cells[:1] if options.pods else ())
    found: dict[Refusal, None] = {}
    for cell in asked:
        try:
            cards_of(read_lane(bundle / CELLS / cell.name / LANE), options)
        except RefusedError as error:
            found |= dict.fromkeys(_with_ways(each) for each in error.refusals)
    if found:
        raise RefusedError(found)


def _with_ways(refusal: Refusal) -> Refusal:
    """A lane that lacks a card is sent to a pods file, which a matrix does not take."""
    return replace(refusal, hint=_WAYS) if refusal.label == Label.DEVICE_ABSENT else refusal


def _reopen(options: RunOptions, bundle: Path) -> bundles.Opened:
    opened = bundles.reopen(bundle, BEGUN)
    begun = opened.stream.events[0].data
    found: list[Refusal] = []
    if not opened.stream.sealed and begun["content_sha256"] != options.content.digest:
        digests = f"(got {options.content.digest}, expected {begun['content_sha256']})"
        message = f"content has changed since this run began {digests}"
        found.append(Refusal(Label.FILE_UNREADABLE, message, Where(str(options.content.root))))
    if options.pods is not None and str(options.pods) != begun["pods"]:
        message = f"the run was begun elsewhere (got {options.pods}, expected {begun['pods']})"
        found.append(Refusal(Label.POD_CHANGED, message, Where(str(bundle))))
    if found:
        opened.close()
        raise RefusedError(found)
    return opened
