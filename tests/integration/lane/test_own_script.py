"""A program of the user's own: the shipped one passes, and each broken one is refused by the check made for it."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from lane_workshop import Workshop, events
from own_programs import BROKEN, LANE, own

SHORT = {"updates": "12", "split": "7"}


def failed(result: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Name -> check, of all checks that did not pass."""
    return {
        check["name"]: check
        for step in result["steps"]
        for check in step["checks"]
        if check["verdict"] not in ("pass", "not-applicable")
    }


def test_the_shipped_script_passes_with_its_own_setup(workshop: Workshop) -> None:
    code, result = workshop.run(LANE)
    assert code == 0, failed(result)
    assert result["verdict"] == "pass"
    assert len(result["losses"]) == 60
    assert workshop.strays() == []
    bundle = Path(result["bundle"])
    assert (bundle / "steps/build/1/setup-2/trainer/exit").read_text() == "0\n"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """The bundle of a sound script's lane; do not write into it."""
    workshop = Workshop(tmp_path_factory.mktemp("own"), cache)
    own(workshop, lane=SHORT)
    code, result = workshop.run(LANE)
    assert code == 0, failed(result)
    return Path(result["bundle"])


def test_it_is_judged_elsewhere_with_all_else_gone(sound: Path, workshop: Workshop) -> None:
    shutil.copytree(sound, workshop.folder / "bundle")
    done = workshop.orch("judge", "bundle", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert workshop.orch("evidence", "verify", "bundle").returncode == 0


EXPECTED = {
    "unseeded noise": ("deterministic", "not deterministic: first at update 5: trainer: w[3] = "),
    "forgotten optimizer state": (
        "part-2-equals-uninterrupted",
        "state is lost at resume: first at update 8: trainer: v[0] = ",
    ),
    "forgotten data position": (
        "part-2-equals-uninterrupted",
        "state is lost at resume: first at update 8: trainer: position[0] = ",
    ),
    "written in place": ("cut-left-nothing-torn", "trainer: torn: "),
    "refusal that exits 0": ("changed-byte-refused", "trainer: exit 0"),
}


@pytest.mark.parametrize("variant", BROKEN)
def test_a_broken_script_is_refused_by_the_check_made_for_it(variant: str, workshop: Workshop) -> None:
    own(workshop, *BROKEN[variant], lane=SHORT)
    code, result = workshop.run(LANE)
    wrong = failed(result)
    name, said = EXPECTED[variant]
    assert code == 1
    assert result["verdict"] == "fail"
    assert name in wrong, wrong
    assert wrong[name]["got"].startswith(said), wrong[name]
    assert workshop.orch("judge", result["bundle"]).returncode == 1
    assert workshop.strays() == []
