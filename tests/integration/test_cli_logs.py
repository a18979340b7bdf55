"""`orch logs` on this machine: while a lane runs, and afterwards."""

from __future__ import annotations

import json
import signal
import subprocess
import threading

from test_cli_clean import command, orch, project, running  # noqa: F401 - fixtures


def test_a_running_launch_is_read_from_the_node(running, project, pytestconfig):  # noqa: F811
    done = orch(project, pytestconfig, "logs")
    assert done.returncode == 0, done.stderr
    with subprocess.Popen(**command(project, pytestconfig.rootpath, "logs", "-f", "coordinator")) as followed:
        patience = threading.Timer(120, followed.kill)
        patience.start()
        try:
            assert followed.stdout is not None
            assert followed.stderr is not None
            line = followed.stdout.readline()
            assert line.startswith("coordinator progress: "), followed.stderr.read()
            running.send_signal(signal.SIGTERM)
            running.communicate(timeout=120)
            rest, complaints = followed.stdout.read(), followed.stderr.read()
            followed.wait(timeout=120)
        finally:
            patience.cancel()
            if followed.poll() is None:
                followed.kill()
    assert followed.returncode == 0, complaints
    # all lines of what became the record, none twice
    updates = [
        int(each.split(": ")[1].split(" ")[0]) for each in (line + rest).splitlines() if " progress: " in each
    ]
    assert updates == list(range(updates[0], updates[0] + len(updates)))
    after = json.loads(orch(project, pytestconfig, "logs", "coordinator", "--json").stdout)
    assert after["collected"] is True
    assert f"\n{updates[-1]} " in after["roles"]["coordinator"]["progress"]


def test_what_there_is_nothing_to_read_of(project, pytestconfig):  # noqa: F811
    done = orch(project, pytestconfig, "logs")
    assert done.returncode == 2
    assert "orch run LANE" in done.stderr
