"""What a small file can ask for is bounded before anything of it is made."""

import shutil
from pathlib import Path

import pytest

from orchestrator.errors import Label
from orchestrator.spec.nodesets import MAX_BLOCKS
from orchestrator.spec.read import validate

GOOD = Path(__file__).parents[2] / "refusals" / "good"


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ("parameters: {a: {size: 8388608, initial: 0}, b: {size: 1, initial: 0}}", "parameters.b.size"),
        (
            "parameters: {a: {size: 4500000, initial: 0}}\nstate: {b: {size: 4500000, initial: 0}}",
            "state.b.size",
        ),
        ("parameters: {a: {size: 1, initial: 0}}\nsample: {x: 1048576, y: 1}", "sample.y"),
        ("parameters: {a: {size: 8388609, initial: 0}}", "parameters.a.size"),
    ],
)
def test_a_state_is_bounded_as_a_whole_before_any_word_of_it_is_made(
    tmp_path: Path, fields: str, place: str
) -> None:
    sample = "" if "sample" in fields else "sample: {x: 1, y: 1}\n"
    (tmp_path / "data.csv").write_text("1,2\n")
    path = tmp_path / "system.yaml"
    path.write_text(
        f"orch: system/v1\nname: a\nkind: data-parallel\n{fields}\n{sample}contribution: [e = x]\n"
        "update: [a = a]\nevaluate: [loss = x]\nrate: 1.0\nsamples: {file: data.csv}\n"
    )
    found = validate((path,))
    assert (found[0].label, found[0].key) == (Label.VALUE_RANGE, place)


def test_roles_are_bounded_together_as_one_set_is(tmp_path: Path) -> None:
    shutil.copytree(GOOD, tmp_path / "good")
    path = tmp_path / "good" / "run.toml"
    text = path.read_text()
    many = ", ".join(f'"w{2 * number}"' for number in range(60_000))
    path.write_text(text.replace('"worker[1-2]"]', f'"worker[1-2]", {many}]'))
    (refusal,) = validate((path,))
    assert (refusal.label, refusal.key) == (Label.VALUE_RANGE, "roles[4096]")
    keys = "\n".join(f'"x[1-64]n[1-63]x0,y{number}" = 1' for number in range(5_000))
    path.write_text(text.replace("[pairings]", f"{keys}\n\n[pairings]"))
    found = validate((path,))
    assert 1 <= len(found) < 20
    assert {refusal.label for refusal in found} == {Label.ROLE_UNKNOWN}


def test_a_hint_is_looked_for_only_for_the_first_of_many_faults(tmp_path: Path) -> None:
    path = tmp_path / "lane.yaml"
    path.write_text("orch: lane/v1\n" + "".join(f"nam{number}: 1\n" for number in range(300)))
    unknown = [refusal for refusal in validate((path,)) if refusal.label == Label.KEY_UNKNOWN]
    assert len(unknown) == 300
    assert 50 < sum(bool(refusal.hint) for refusal in unknown) <= 100


def test_every_role_of_many_may_have_a_key_of_its_own(tmp_path: Path) -> None:
    shutil.copytree(GOOD, tmp_path / "good")
    path = tmp_path / "good" / "run.toml"
    count = 4 * MAX_BLOCKS + 10
    own = "\n".join(f"w{number} = 0" for number in range(count))
    text = path.read_text().replace('"worker[1-2]"]', f'"worker[1-2]", "w[0-{count - 1}]"]')
    text = text.replace('"worker[1-2]" = {', f'"worker[1-2],w[0-{count - 1}]" = {{')
    path.write_text(text.replace("[samples]", f"[samples]\n{own}"))
    assert validate((path,)) == ()
