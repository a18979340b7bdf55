"""The shipped script and lane as a user has them, and scripts that are broken in one way each."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from lane_workshop import ROOT, Workshop

LANE = "lanes/own-script.yaml"
SCRIPT = "roles/own-script/fit.py"
RUN = "specs/runs/own-script.yaml"

NOISE = """state["update"] += 1
    if state["update"][0] == 5:
        state["w"][3] += 1e-9 * np.random.default_rng().random()
"""

# name -> what stands in the script, and what stands there instead
BROKEN: Mapping[str, tuple[tuple[str, str], ...]] = {
    "unseeded noise": (
        (
            'state["update"] += 1\n',
            NOISE,
        ),
    ),
    "forgotten optimizer state": (
        (
            "    return state, generator\n\n\ndef main",
            '    state["v"][:] = 0\n    return state, generator\n\n\ndef main',
        ),
    ),
    "forgotten data position": (
        (
            "    return state, generator\n\n\ndef main",
            '    state["position"][:] = 0\n    return state, generator\n\n\ndef main',
        ),
    ),
    "written in place": (
        ('with open(f"{path}.part", "wb") as file:', 'with open(path, "wb") as file:'),
        ('    os.replace(f"{path}.part", path)\n', ""),
    ),
    "refusal that exits 0": (("REFUSED = 3\n", "REFUSED = 0\n"),),
}


def own(workshop: Workshop, *changes: tuple[str, str], lane: Mapping[str, str] | None = None) -> Path:
    """A copy of the shipped lane whose script runs under this Python, without setup; gives its folder."""
    for name in ("specs", "lanes", "roles"):
        shutil.copytree(ROOT / name, workshop.folder / name, dirs_exist_ok=True)
    change(workshop.folder / RUN, *without_setup((workshop.folder / RUN).read_text()))
    change(workshop.folder / SCRIPT, *changes)
    for key, value in (lane or {}).items():
        path = workshop.folder / LANE
        path.write_text(re.sub(rf"^{key}:.*$", f"{key}: {value}", path.read_text(), flags=re.MULTILINE))
    return workshop.folder


def without_setup(text: str) -> tuple[tuple[str, str], ...]:
    setup = re.search(r"  setup:\n(?:    - .*\n)+", text)
    assert setup
    return ((setup[0], ""), ('"{setup}/venv/bin/python"', f'"{sys.executable}"'))


def change(path: Path, *changes: tuple[str, str]) -> None:
    text = path.read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text)
