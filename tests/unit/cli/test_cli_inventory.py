"""`orch inventory` and `orch profile capture`: this machine's tools are asked as any machine's are."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from orchestrator.qualify.looks import of_machine
from orchestrator.remote.local import Local
from orchestrator.spec.read import read_device

pytestmark = pytest.mark.skipif(
    Path("/proc/driver/nvidia/version").exists(), reason="this machine has a driver of its own"
)
SCRIPT = """\
#!/bin/sh
case "$*" in
"-q -x") cat '{folder}/xml' ;;
*compute_cap*) printf 'pci.bus_id, compute_cap\\n00000000:2D:00.0, 8.6\\n' ;;
*query-gpu*) printf 'index, pci.bus_id, uuid\\n0, 00000000:2D:00.0, {uuid}\\n' ;;
*compute-apps*) printf 'gpu_bus_id, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\\n{apps}' ;;
*) exit 2 ;;
esac
"""
UUID = "GPU-d6889ff6-2523-9142-ca3c-1ca3f396a625"


@pytest.fixture
def capture(pytestconfig, tmp_path):
    def place(name):
        kept = pytestconfig.rootpath / "tests" / "data" / "nvidia-smi" / f"{name}.gz"
        path = tmp_path / name
        path.write_bytes(gzip.decompress(kept.read_bytes()))
        return path

    return place


@pytest.fixture
def smi(capture, tmp_path, monkeypatch):
    """This machine has one card, by a program that prints what a real one printed."""

    def place(apps="", text=None):
        (tmp_path / "bin").mkdir(exist_ok=True)
        xml = capture("x31_rtx3060_570.xml").read_text().replace("<used>116 MiB</used>", "<used>4 MiB</used>")
        (tmp_path / "xml").write_text(xml)
        program = tmp_path / "bin" / "nvidia-smi"
        program.write_text(text or SCRIPT.format(folder=tmp_path, uuid=UUID, apps=apps))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")

    return place


def inventory(capsys):
    code = main(["inventory", "--json"])
    return code, json.loads(capsys.readouterr().out)["nodes"]["local"]


def test_this_machine_is_asked(smi, capsys):
    smi()
    code, said = inventory(capsys)
    assert (code, said["faults"], said["driver"]) == (0, [], "570.124.04")
    (card,) = said["cards"]
    assert (card["minor"], card["uuid"], card["capability"], card["index"]) == (0, UUID, "8.6", 0)
    assert card["state"]["is"] == "idle"
    assert any(note.startswith("nvidia-smi is ") for note in said["notes"])
    assert any(note.startswith("NVML was not asked") for note in said["notes"])


def test_a_busy_card_is_said_to_be_busy(smi, capsys):
    smi(f"00000000:2D:00.0, {UUID}, 4711, python, 160 MiB\\n")
    code, said = inventory(capsys)
    assert code == 0, "a busy card is still a card"
    assert said["cards"][0]["state"]["is"] == "device-busy"
    assert main(["inventory"]) == 0
    out = capsys.readouterr().out
    assert UUID in out
    assert "python (pid 4711" in out


@pytest.mark.parametrize(
    ("script", "code", "label"),
    [
        ("#!/bin/sh\necho 'No devices were found'\nexit 6\n", 1, "device-absent"),
        ("#!/bin/sh\necho 'Failed to initialize NVML: Unknown Error'\nexit 255\n", 1, "device-inventory"),
    ],
)
def test_a_list_that_cannot_be_had_is_refused(smi, capsys, script, code, label):
    smi(text=script)
    assert main(["inventory"]) == code
    assert label in capsys.readouterr().err
    assert main(["profile", "capture"]) == code
    assert label in capsys.readouterr().err


def test_a_machine_without_the_tool_has_no_card(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    code, said = inventory(capsys)
    assert code == 1
    assert [fault["label"] for fault in said["faults"]] == ["device-absent"]


def test_nodes_of_a_rental_that_cannot_be_reached(tmp_path, capsys):
    pods = tmp_path / "pods.yaml"
    pods.write_text(
        "orch: pods/v1\ntransport: loopback\nnodes:\n"
        "  a: {host: root@127.0.0.1, port: 1, owned: true, host_key: 'SHA256:" + "A" * 43 + "'}\n"
    )
    assert main(["inventory", "--pods", str(pods)]) == 4
    assert "unreachable" in capsys.readouterr().err
    assert main(["inventory", "--pods", "simulated"]) == 2


def test_kept_texts_are_read(capture, capsys):
    names = ("uh100_590_load_q.txt", "uh100_590_load_query_gpu.csv", "uh100_590_load_compute_apps.csv")
    assert main(["inventory", "--from", *(str(capture(name)) for name in names), "--json"]) == 0
    (card,) = json.loads(capsys.readouterr().out)["nodes"]["kept"]["cards"]
    assert (card["minor"], card["capability"], card["state"]["is"]) == (0, "9.0", "device-busy")
    assert main(["inventory", "--from", str(capture("x25_gtx1070_attached6_listed2_384.xml"))]) == 1
    assert "got 2, expected 6" in capsys.readouterr().err
    assert main(["inventory", "--from", __file__]) == 2
    same = str(capture("x25_gtx1070_attached6_listed2_384.xml"))
    assert main(["inventory", "--from", same, same]) == 2


def test_a_profile_is_written_as_it_is_read(smi, capsys, tmp_path):
    smi()
    path = tmp_path / "card.yaml"
    assert main(["profile", "capture", "--output", str(path)]) == 0
    device = read_device(path)
    assert (device.name, device.product) == ("nvidia-geforce-rtx-3060", "NVIDIA GeForce RTX 3060")
    facts = device.facts
    assert facts["compute_capability"].value == "8.6"
    assert facts["memory_total"].value == {"570.124.04": 12288 << 20}
    assert facts["memory_reserved"].value == {"570.124.04": 368 << 20}
    assert "570.124.04" in facts["memory_total"].reference
    assert (facts["pcie_generation"].value, facts["pcie_width"].value) == (4, 16)
    assert (facts["float16"].value, facts["bfloat16"].value) == ("native", "native")
    assert facts["copy_engines"].value is None
    assert facts["copy_engines"].reason
    assert main(["profile", "capture", "--output", str(path)]) == 2, "nothing is written over"
    capsys.readouterr()
    assert main(["profile", "capture", "--card", UUID]) == 0
    assert capsys.readouterr().out == path.read_text()
    assert main(["profile", "capture", "--card", "7"]) == 2


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("x20_gtx1660ti_as_graphics_device_418.xml", "nvidia-plan-host"),
        ("uh200mig_590_load_q.txt", "device-mig"),
        ("x25_gtx1070_attached6_listed2_384.xml", "device-inventory"),
        ("o02_mi300x_x4_rocm_smi_concise.txt", "device-absent"),
    ],
)
def test_no_profile_of_what_cannot_be_told(capture, capsys, name, label):
    assert main(["profile", "capture", "--json", "--from", str(capture(name))]) == 1
    refusals = json.loads(capsys.readouterr().out)["refusals"]
    assert {refusal["label"] for refusal in refusals} == {label}


def test_a_profile_of_a_card_without_capability_has_it_absent(capture, capsys):
    assert main(["profile", "capture", "--from", str(capture("r01_rtx3070_550.txt"))]) == 0
    text = capsys.readouterr().out
    assert "  compute_capability:\n    absent:" in text
    assert '    established: {"550.54.14": 227 MiB}' in text


class Hasty(Local):
    """This machine, with less patience."""

    def run(self, argv, *, deadline_s):
        return super().run(argv, deadline_s=min(deadline_s, 0.5))


def test_a_tool_that_hangs_is_asked_once(smi, tmp_path):
    smi(text=f"#!/bin/sh\necho asked >> {tmp_path}/asked\nexec sleep 60\n")
    inventory = of_machine(Hasty())
    assert (tmp_path / "asked").read_text() == "asked\n"
    assert [(str(fault.label), fault.is_undecided) for fault in inventory.faults] == [
        ("device-inventory", True)
    ]


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_a_tool_that_does_not_stop_writing_is_stopped(smi, capsys, stream):
    smi(text=f"#!/bin/sh\nexec head -c 80000000 /dev/zero{stream}\n")
    code, node = inventory(capsys)
    assert (code, node["cards"]) == (1, [])
    assert {fault["label"] for fault in node["faults"]} == {"device-inventory"}
