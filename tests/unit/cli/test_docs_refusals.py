from __future__ import annotations

import re

from orchestrator.errors import Label

ROW = re.compile(r"^\| `([a-z-]+)` \| (.+) \| (.+) \|$")


def test_every_label_has_its_one_line_and_no_other_label_has_one(pytestconfig):
    text = (pytestconfig.rootpath / "docs" / "refusals.md").read_text(encoding="utf-8")
    rows = [match for line in text.splitlines() if (match := ROW.match(line))]
    assert sorted(row[1] for row in rows) == sorted(Label)
    assert all(row[2].strip() and row[3].strip() for row in rows)
