"""Whatever a secret is written in, it is found in what is kept."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import Label
from orchestrator.redact import LEAST_CHARS, MARK, Secrets

SECRETS = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=LEAST_CHARS, max_size=40
).filter(lambda text: text == text.strip() and MARK not in text and text not in MARK and text[0] not in "/~")
AROUND = st.binary(max_size=30)


def of(*values: str) -> Secrets:
    return Secrets.of({f"CANARY_TOKEN_{i}": value for i, value in enumerate(values)})


@given(SECRETS, AROUND, AROUND)
def test_a_secret_is_in_no_bytes(secret, before, after):
    raw = secret.encode()
    clean = of(secret).redact(before + raw + after)
    assert raw not in clean.replace(MARK.encode(), b"")


@given(SECRETS, st.text(max_size=5), st.text(max_size=5))
def test_nor_in_any_form_of_it(secret, before, after):
    secrets = of(secret)
    for written in (
        json.dumps(before + secret + after),
        json.dumps(before + secret + after, ensure_ascii=False),
        repr(secret),
        quote(secret, safe=""),
        secret.encode().hex(),
        secret.encode().hex().upper(),
    ):
        assert MARK in secrets.text(written)


@given(SECRETS, st.binary(max_size=5), st.binary(max_size=5))
def test_nor_within_base64(secret, before, after):
    data = before + secret.encode() + after
    for written in (base64.b64encode(data), base64.urlsafe_b64encode(data)):
        clean = of(secret).redact(written)
        assert MARK.encode() in clean
        left = max(clean.split(MARK.encode()), key=len)
        assert secret.encode() not in left


@given(SECRETS, SECRETS, st.lists(st.binary(max_size=4), max_size=4))
def test_of_several_none_is_left(one, other, parts):
    data = one.encode().join([b"", *parts, b""]) + other.encode()
    clean = of(one, other).redact(data).replace(MARK.encode(), b"\0")
    assert one.encode() not in clean
    assert other.encode() not in clean


@given(st.binary(max_size=200))
def test_what_holds_none_stays_as_it_is(data):
    secret = "a-secret-that-no-drawn-bytes-hold"
    assert of(secret).redact(data) == data
    assert Secrets().redact(data) == data


def test_lines_of_a_key_are_found_one_by_one():
    lines = ["-----BEGIN PRIVATE KEY-----", "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU", "-----END PRIVATE KEY-----"]
    secrets = Secrets.of({"DEPLOY_KEY": "\n".join(lines) + "\n"})
    assert secrets.text(f"x {lines[1]} y") == f"x {MARK} y"
    assert lines[1] not in secrets.text("\n".join(lines))


def test_json_values_are_cleaned_with_their_keys():
    value = {"a": ["hunter2-canary", 1, None, True, {"hunter2-canary": "x hunter2-canary"}], "b": 0.5}
    assert of("hunter2-canary").json(value) == {"a": [MARK, 1, None, True, {MARK: f"x {MARK}"}], "b": 0.5}
    assert of("hunter2-canary").json(("hunter2-canary",)) == [MARK]


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "WANDB_API_KEY",
        "PGPASSWORD",
        "MYSQL_PASSWD",
        "X_CREDENTIALS",
        "BASIC_AUTH",
        "authorization",
        "apikey",
        "OAUTH2",
        "AUTHOR_TOKEN",
    ],
)
def test_names_that_say_so(name):
    assert Secrets.of({name: "hunter2-canary"}).text("hunter2-canary") == MARK


@pytest.mark.parametrize("name", ["HOME", "GIT_AUTHOR_NAME", "KEYBOARD_LAYOUT", "XKB_KEYMAP", "LANG"])
def test_names_that_do_not(name):
    assert Secrets.of({name: "hunter2-canary"}).text("hunter2-canary") == "hunter2-canary"


def test_a_name_of_the_project_and_a_short_value():
    environment = {"PLAIN": "hunter2-canary", "A_TOKEN": "1234567"}
    assert Secrets.of(environment, ["PLAIN"]).text("hunter2-canary 1234567") == f"{MARK} 1234567"


def test_a_place_is_no_secret(tmp_path):
    path = tmp_path / "agent.sock"
    path.touch()
    assert not Secrets.of({"SSH_AUTH_SOCK": str(path)}).values
    assert Secrets.of({"SSH_AUTH_SOCK": f"{path}-that-is-not-there"}).values


def test_nothing_shows_the_values():
    secrets = Secrets.of({"A_TOKEN": "hunter2-canary"})
    assert "hunter2" not in repr(secrets) + str(secrets)


def test_files_are_cleaned_and_named():
    files = {Path("a"): b"hunter2-canary", Path("b"): b"fine"}
    assert of("hunter2-canary").files(files) == ({Path("a"): MARK.encode(), Path("b"): b"fine"}, (Path("a"),))


def test_a_file_that_holds_one_is_refused_at_its_place(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text("orch: run/v1\nname: é hunter2-canary\n", encoding="utf-8")
    (refusal,) = Secrets.of({"HF_TOKEN": "hunter2-canary"}).refusals([path, tmp_path / "absent"])
    assert (refusal.label, refusal.where.line, refusal.where.column) == (Label.SECRET_IN_FILE, 2, 9)
    assert "HF_TOKEN" in refusal.message
    assert "hunter2" not in str(refusal)
