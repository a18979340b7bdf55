"""docs/cards.md has a line for every question and for every row."""

from __future__ import annotations

import re

from captures import inventory_of

from orchestrator.probe import Wanted, checks, commands


def test_every_question_and_every_row_has_its_line(pytestconfig):
    text = (pytestconfig.rootpath / "docs" / "cards.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE)
    wanted = Wanted("NVIDIA A10G", "8.6", "GPU-9a9a6c50-2a47-2f51-a902-b82c3b127e94", 0, ("515.105",))
    rows = [row.name for row in checks(inventory_of("x17_a10g_xorg_only_515.xml"), wanted)]
    assert listed == [*(each.name for each in commands()), *rows]
