"""A canary in the controller's environment, a key's comment and a role's output: in nothing that is kept."""

from __future__ import annotations

import base64
import subprocess

from lab.desk import Desk, events
from lab.node import sshd
from lab.pods import write_pods

SECRET = "canary-4f9c02be77d1"
COMMENT = "comment-of-a-key-8841"
FILES = {
    # the program knows the secret by itself, and says it in every way that it has
    "leak.sh": f"""\
secret={SECRET[:9]}
secret=${{secret}}{SECRET[9:]}
echo "to stdout $secret"
echo "to stderr $secret $(printf 'user:%s' "$secret" | base64)" >&2
mkdir "$1"
echo "in a checkpoint $secret" >"$1/state"
""",
    "run.yaml": """\
orch: run/v1
name: leaky
roles: [trainer]
program:
  argv: [sh, leak.sh, "{out}"]
  files: [leak.sh]
  checkpoint: files
pairings: {trainer: {target: command}}
""",
    "lane.yaml": """\
orch: lane/v1
name: leaky
run: run.yaml
updates: 6
split: 3
omit: {refusals: a program that checks nothing}
deadlines: {connect: 10s, round: 5s, run: 1m}
""",
}


def test_no_secret_is_kept_anywhere(tmp_path):
    desk = Desk(tmp_path / "desk", tmp_path / "cache", {"LAB_TOKEN": SECRET, "ORCH_NOISE": "1"})
    with sshd(tmp_path / "a") as node:
        subprocess.run(["ssh-keygen", "-q", "-c", "-C", COMMENT, "-f", node.key, "-P", ""], check=True)
        desk.folder.mkdir()
        pods = write_pods(desk.folder / "pods.yaml", {"a": node})
        for name, text in FILES.items():
            (desk.folder / name).write_text(text)
        done = desk.orch("run", "--pods", pods.name, "lane.yaml", "--keep")
        said = done.stdout + done.stderr
        assert "Traceback" not in said
        shown = desk.orch("logs").stdout + desk.orch("pods", "show").stdout
        (bundle,) = desk.bundles()
        named = [
            name
            for event in events(bundle)
            if event["type"] == "orch.redacted"
            for name in event["data"]["files"]
        ]
        assert {name.rsplit("/", 1)[1] for name in named} >= {"stdout", "stderr", "state"}, said
        stderr = next(bundle / name for name in named if name.endswith("/trainer/stderr"))
        assert b"to stderr [redacted] " in stderr.read_bytes()
        assert desk.orch("evidence", "verify", "last").returncode == 0
        kept = [path for path in (*desk.folder.rglob("*"), *desk.cache.rglob("*")) if path.is_file()]
        kept = [
            path for path in kept if path != pods
        ]  # it names the key's file, whose comment it does not know
        assert len(kept) > 20
        encoded = base64.b64encode(b"user:" + SECRET.encode())[8:24]
        for place, data in [(str(path), path.read_bytes()) for path in kept] + [
            ("", (said + shown).encode())
        ]:
            for secret in (SECRET.encode(), COMMENT.encode(), encoded):
                assert secret not in data, place
        # the node has what the program wrote there, and nothing of the key or of the controller's environment
        assert COMMENT.encode() not in b"".join(
            path.read_bytes() for path in node.home.rglob("*") if path.is_file()
        )
