"""A secret of the controller's, wherever it stands, is in no file that a run leaves, here or on the node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from lab.desk import Desk
from lab.keys import make_key, public
from lab.node import sshd
from lab.pods import write_pods

CANARY = "canary-5d1f0c6e9b"


def holding(folder: Path, text: str) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and text.encode() in path.read_bytes():
            yield path


def test_no_secret_is_left_anywhere(desk: Desk, tmp_path: Path):
    asked = replace(desk, environment={"PROVIDER_API_KEY": CANARY, "ORCH_DEBUG": "1"})
    with sshd(tmp_path / "node") as node:
        key = make_key(tmp_path / "key", comment=CANARY)
        authorized = node.home / ".ssh/authorized_keys"
        authorized.write_text(" ".join(public(key).split()[:2]) + "\n")
        pods = write_pods(desk.folder / "pods.yaml", {"a": node.pods_entry(key=str(key))})
        code, result, err = asked.run("lanes/samples.yaml", pods, "--keep", "--db", "tracker.sqlite3")
        assert code == 0, (result, err)
        assert CANARY not in err + str(result)
        assert list(holding(desk.folder, CANARY)) == []
        for place in ("home", "tmp", "vartmp", "shm"):
            assert list(holding(node.folder / place, CANARY)) == []
        private = key.read_text().splitlines()[3]
        assert list(holding(desk.folder, private)) == []
        for place in ("home", "tmp", "vartmp", "shm"):
            assert list(holding(node.folder / place, private)) == []
        bundle = Path(result["bundle"])
        assert list(holding(bundle, str(key))) == [], "nor where the key lies"
