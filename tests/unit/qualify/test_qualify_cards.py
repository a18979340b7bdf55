"""Cards for device roles: chosen by product and node, pinned, and placed as a pods file says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import Label, RefusedError
from orchestrator.qualify.cards import BoundCard, PinnedCards, Wish, choose
from orchestrator.qualify.pins import Pinned
from orchestrator.qualify.placement import minor_of, place, uuid_of, without_card
from orchestrator.spec.read import read_pods

SMALL, LARGE = "NVIDIA GeForce RTX 3070", "NVIDIA GeForce RTX 3090"
UUIDS = tuple(f"GPU-{digit * 8}-1111-1111-1111-111111111111" for digit in "1234")
POOL = tuple(
    (BoundCard("a", minor, uuid), product)
    for minor, uuid, product in zip((3, 2, 1, 0), UUIDS, (SMALL, LARGE, SMALL, LARGE), strict=True)
)


def minors(found: dict[str, BoundCard]) -> dict[str, int]:
    return {role: card.minor for role, card in found.items()}


def test_each_role_gets_the_first_free_card_of_its_product_on_its_node():
    wishes = {"root": Wish("a", LARGE), "left": Wish("a", SMALL), "right": Wish("a", SMALL)}
    assert minors(choose(wishes, POOL)) == {"root": 2, "left": 3, "right": 1}


def test_a_role_for_which_no_card_is_left_gets_none():
    wishes = {"root": Wish("b", LARGE), "left": Wish("a", SMALL), "right": Wish("a", "NVIDIA L4")}
    assert minors(choose(wishes, POOL)) == {"left": 3}


def test_swapped_profiles_exchange_cards_and_who_is_not_swapped_keeps_his():
    before = {"root": POOL[0][0], "left": POOL[1][0], "right": POOL[2][0]}
    wishes = {"root": Wish("a", LARGE), "left": Wish("a", SMALL), "right": Wish("a", SMALL)}
    found = choose(wishes, POOL[:3], before)
    assert minors(found) == {"root": 2, "left": 3, "right": 1}


@given(st.lists(st.sampled_from([SMALL, LARGE]), max_size=6), st.lists(st.booleans(), max_size=6))
def test_no_two_roles_share_a_card(products, kept):
    wishes = {f"role{index}": Wish("a", product) for index, product in enumerate(products)}
    first = choose(wishes, POOL)
    before = {role: card for (role, card), keeps in zip(first.items(), kept, strict=False) if keeps}
    found = choose(wishes, POOL, before)
    assert len(set(found.values())) == len(found)
    assert len(found) == len(first)
    assert all(found[role] == card for role, card in before.items())


def test_pinned_cards_are_read_back_as_they_were():
    pinned = PinnedCards(
        is_simulated=True,
        own={"root": POOL[0][0]},
        swapped={"root": BoundCard("a", 7, None)},
        files={"standin/cards": "0" * 64},
    )
    assert PinnedCards.from_json(json.loads(json.dumps(pinned.as_json()))) == pinned
    with pytest.raises(ValueError, match="no cards of a bundle"):
        PinnedCards.from_json({**pinned.as_json(), "simulated": "yes"})


def rental(tmp_path: Path, roles: dict[str, str] | None = None, **cards: dict[str, int]):
    nodes = {
        name: {"host": f"root@{name}.example", "owned": True, "cards": each} for name, each in cards.items()
    }
    path = tmp_path / "pods.yaml"
    said = {"roles": roles} if roles else {}
    path.write_text(json.dumps({"orch": "pods/v1", "transport": "ssh-tunnel", "nodes": nodes, **said}))
    return read_pods(path)


def test_device_roles_get_the_next_card_of_their_node_and_host_roles_none(tmp_path: Path):
    pods = rental(tmp_path, a={UUIDS[0]: 3, UUIDS[1]: 2}, b={UUIDS[2]: 0})
    placed = place(("root", "left", "right"), pods, ("root", "right"))
    assert [(where.node, where.card) for where in placed.values()] == [
        ("a", UUIDS[0]),
        ("a", None),
        ("b", UUIDS[2]),
    ]
    assert not tuple(without_card(placed, pods, ("root", "right")))
    bound = Pinned.of(pods, placed).cards
    assert bound == {"root": BoundCard("a", 3, UUIDS[0]), "right": BoundCard("b", 0, UUIDS[2])}


def test_a_card_that_the_file_names_for_a_role_goes_to_nobody_else(tmp_path: Path):
    roles = {"left": f"a/{UUIDS[0]}", "root": "a"}
    pods = rental(tmp_path, roles, a={UUIDS[0]: 3, UUIDS[1]: 2})
    placed = place(("root", "left"), pods, ("root", "left"))
    assert [where.card for where in placed.values()] == [UUIDS[1], UUIDS[0]]


def test_a_device_role_without_a_card_is_told_how_to_get_one(tmp_path: Path):
    pods = rental(tmp_path, a={UUIDS[0]: 3}, b={})
    placed = place(("root", "left"), pods, ("root", "left"))
    (refusal,) = without_card(placed, pods, ("root", "left"))
    assert refusal.label == Label.DEVICE_ABSENT
    assert "role `left` on node b" in refusal.message
    assert "orch pods pin b" in refusal.hint


def test_a_card_may_be_bound_by_its_minor_alone(tmp_path: Path):
    pods = rental(tmp_path, {"root": "a/node-only:7"}, a={})
    where = place(("root",), pods, ("root",))["root"]
    assert (minor_of(where.card, {}), uuid_of(where.card)) == (7, None)
    assert Pinned.of(pods, {"root": where}).cards == {"root": BoundCard("a", 7, None)}


@pytest.mark.parametrize("minor", ["", "-1", "07", "248", "1e1", "x"])
def test_a_minor_that_no_card_has_is_refused(tmp_path: Path, minor: str):
    with pytest.raises(RefusedError) as refused:
        rental(tmp_path, {"root": f"a/node-only:{minor}"}, a={})
    assert [each.label for each in refused.value.refusals] == [Label.VALUE_FORMAT]


def test_one_minor_of_a_node_is_for_one_role(tmp_path: Path):
    with pytest.raises(RefusedError, match="one card is for one role"):
        rental(tmp_path, {"root": "a/node-only:7", "left": "a/node-only:7"}, a={})
    rental(tmp_path, {"root": "a/node-only:7", "left": "b/node-only:7"}, a={}, b={})
