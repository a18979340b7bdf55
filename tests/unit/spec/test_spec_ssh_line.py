"""What people paste after renting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import Label, RefusedError
from orchestrator.spec.ssh_line import SshLine, parse

V6 = "2001:db8::7"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "ssh root@203.0.113.7 -p 41022 -i ~/.ssh/id_ed25519",
            ("203.0.113.7", "root", 41022, "~/.ssh/id_ed25519"),
        ),
        (
            "ssh -p 41022 -i ~/.ssh/id_ed25519 root@203.0.113.7",
            ("203.0.113.7", "root", 41022, "~/.ssh/id_ed25519"),
        ),
        ("ssh -p41022 root@203.0.113.7", ("203.0.113.7", "root", 41022, None)),
        ("  $ ssh root@203.0.113.7 -p 41022\n", ("203.0.113.7", "root", 41022, None)),
        ("/usr/bin/ssh root@203.0.113.7", ("203.0.113.7", "root", None, None)),
        ("ssh root@203.0.113.7 \\\n    -p 41022", ("203.0.113.7", "root", 41022, None)),
        ("ssh root@203.0.113.7 –p 41022", ("203.0.113.7", "root", 41022, None)),  # noqa: RUF001
        ("ssh -l root 203.0.113.7", ("203.0.113.7", "root", None, None)),
        ("ssh -l other root@203.0.113.7", ("203.0.113.7", "root", None, None)),
        (
            "ssh -i '/home/me/my keys/id' root@203.0.113.7",
            ("203.0.113.7", "root", None, "/home/me/my keys/id"),
        ),
        (
            "ssh -o Port=41022 -oUser=root -o 'IdentityFile ~/k' 203.0.113.7",
            ("203.0.113.7", "root", 41022, "~/k"),
        ),
        ("ssh -p 1 -p 2 root@h", ("h", "root", 1, None)),
        ("ssh://root@ssh5.vast.ai:12345", ("ssh5.vast.ai", "root", 12345, None)),
        ("ssh://root@ssh5.vast.ai:\n12345\n", ("ssh5.vast.ai", "root", 12345, None)),
        ("ssh://root@\n203.0.113.7:12345", ("203.0.113.7", "root", 12345, None)),
        ("ssh ssh://root@203.0.113.7:12345 -i key", ("203.0.113.7", "root", 12345, "key")),
        (f"ssh://root@[{V6}]:22022/", (V6, "root", 22022, None)),
        (f"ssh root@{V6} -p 22022", (V6, "root", 22022, None)),
        (f"ssh root@[{V6}]", (V6, "root", None, None)),
        (f"[{V6}]:22022", (V6, None, 22022, None)),
        ("fe80::1%eth0", ("fe80::1%eth0", None, None, None)),
        ("root@203.0.113.7:41022", ("203.0.113.7", "root", 41022, None)),
        ("root@my_gpu", ("my_gpu", "root", None, None)),
        ("my-gpu", ("my-gpu", None, None, None)),
        ("ssh my-gpu", ("my-gpu", None, None, None)),
    ],
)
def test_what_people_paste(text, line):
    found = parse(text)
    assert (found.host, found.user, found.port, found.key) == line


def test_what_changes_nothing_is_told():
    found = parse("ssh -p 12345 root@ssh5.vast.ai -L 8080:localhost:8080 -o StrictHostKeyChecking=no -tA")
    assert found == SshLine(
        "ssh5.vast.ai",
        "root",
        12345,
        None,
        ("-L 8080:localhost:8080", "-o StrictHostKeyChecking", "-t", "-A"),
    )
    assert found.target == "root@ssh5.vast.ai"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "ssh",
        "ssh -p 22",
        "ssh root@",
        "ssh -p root@203.0.113.7",
        "ssh root@203.0.113.7 -p 0",
        "ssh root@203.0.113.7 -p 65536",
        "ssh root@203.0.113.7 -p 22;id",
        "ssh root@203.0.113.7 -i",
        "ssh root@203.0.113.7 nvidia-smi",
        "ssh root@203.0.113.7\nrm -rf /",
        "root@203.0.113.7\r\nHost *",
        "ssh root@203.0.113.7\x1b[2J",
        "ssh root@203.0.113.7 'unclosed",
        "ssh -- -oProxyCommand=id",
        "ssh root@-oProxyCommand=id",
        "-oProxyCommand=id",
        "ssh -oProxyCommand=id root@203.0.113.7",
        "ssh -o 'ProxyCommand id' root@203.0.113.7",
        "ssh -o proxycommand=id root@203.0.113.7",
        "ssh -o LocalCommand=id root@203.0.113.7",
        "ssh -o KnownHostsCommand=id root@203.0.113.7",
        "ssh -o Include=/tmp/x root@203.0.113.7",
        "ssh -J jump root@203.0.113.7",
        "ssh -F /tmp/config root@203.0.113.7",
        "ssh -W a:1 root@203.0.113.7",
        "ssh -l -oProxyCommand=id 203.0.113.7",
        "ssh -i -oProxyCommand=id root@203.0.113.7",
        "ssh '$(id)@203.0.113.7'",
        "ssh root@`id`",
        "ssh 'root@203.0.113.7;id'",
        "ssh://root@203.0.113.7:22/path",
        "ssh://%2doProxyCommand=id@203.0.113.7",
        "ssh://-oProxyCommand=id",
        "curl https://example.org",
        "gcloud compute ssh pod",
        "sudo ssh root@203.0.113.7",
        "ssh -Z root@203.0.113.7",
    ],
)
def test_what_is_no_way_to_a_pod_is_refused_by_label(text):
    with pytest.raises(RefusedError) as refused:
        parse(text)
    assert {refusal.label for refusal in refused.value.refusals} == {Label.SSH_LINE}
    assert "(got " in str(refused.value)
    assert ", expected " in str(refused.value)


@pytest.mark.parametrize("text", ["ssh abc123-64411@ssh.runpod.io -i ~/.ssh/id_ed25519", "x@SSH.RunPod.io"])
def test_runpods_proxy_is_refused_with_the_way_out(text):
    with pytest.raises(RefusedError) as refused:
        parse(text)
    (refusal,) = refused.value.refusals
    assert refusal.label == Label.SHELL_UNUSABLE
    assert "SSH over exposed TCP" in refusal.hint


@pytest.mark.parametrize(
    "text", ["sshpass -p hunter2-canary ssh root@203.0.113.7", "ssh://root:hunter2-canary@203.0.113.7:22"]
)
def test_a_password_is_refused_and_not_repeated(text):
    with pytest.raises(RefusedError) as refused:
        parse(text)
    assert "hunter2-canary" not in str(refused.value)


def test_everything_wrong_is_said_at_once():
    with pytest.raises(RefusedError) as refused:
        parse("ssh -o ProxyCommand=id -J jump root@203.0.113.7 -p 0")
    assert len(refused.value.refusals) == 3


@given(st.text(max_size=60) | st.text("ssh -opliJ@:[]/%=root.12 \n'\"\\", max_size=60))
def test_any_text_is_taken_or_refused(text):
    try:
        line = parse(text)
    except RefusedError:
        return
    assert line.host
    assert not line.host.startswith("-")
    assert not (line.user or "").startswith("-")
    assert not (line.key or "").startswith("-")
    assert (line.target + (line.key or "")).isprintable()
