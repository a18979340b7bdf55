from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_binding import ONE_BINDING

from orchestrator.build.binding import SIZE, Binding, BindingError, DeviceBinding

NUMBERS = st.integers(0, 2**53 - 1)
DIGESTS = st.binary(min_size=32, max_size=32).map(bytes.hex)

DEVICES = st.builds(
    DeviceBinding,
    minor=st.integers(0, 247),
    uuid=st.none() | st.uuids().map(lambda value: f"GPU-{value}"),
    is_shadowed=st.booleans(),
    is_simulated=st.booleans(),
    has_established_driver=st.booleans(),
)
BINDINGS = st.builds(
    Binding,
    plan=DIGESTS,
    run_id=st.uuids().map(str),
    epoch=NUMBERS,
    mode=st.sampled_from(["train", "evaluate"]),
    resume=st.booleans(),
    restore_sha256=st.none() | DIGESTS.filter(lambda digest: digest != "00" * 32),
    target=NUMBERS,
    publish_at=NUMBERS,
    data_sha256=DIGESTS,
    address=st.ip_addresses().map(str),
    port=st.integers(0, 65535),
    connect_ms=NUMBERS,
    round_ms=NUMBERS,
    run_ms=NUMBERS,
    secret=st.binary(min_size=16, max_size=16).map(bytes.hex),
    hold_after=NUMBERS,
    parent_address=st.ip_addresses().map(str),
    parent_port=st.integers(0, 65535),
    mesh=st.booleans(),
    device=st.none() | DEVICES,
)


@given(BINDINGS)
def test_what_is_packed_is_unpacked(binding):
    data = binding.pack()
    assert len(data) == SIZE
    assert Binding.unpack(data) == binding
    assert Binding.from_json(binding.as_json()) == binding


@given(BINDINGS, st.integers(0, SIZE - 1), st.integers(1, 255))
def test_no_changed_byte_is_overlooked(binding, at, change):
    data = bytearray(binding.pack())
    data[at] ^= change
    with pytest.raises(BindingError):
        Binding.unpack(bytes(data))


def resealed(data: bytes) -> bytes:
    return data[:480] + hashlib.sha256(data[:480]).digest()


@given(st.binary(max_size=SIZE + 1) | st.binary(min_size=SIZE, max_size=SIZE).map(resealed))
def test_other_bytes_are_no_binding(data):
    with pytest.raises(BindingError):
        Binding.unpack(data)


@pytest.mark.parametrize("at", [0, 8, 12, 16, 20, 192, 204, 232, 244, 256, 260, 479])
def test_a_whole_binding_has_one_right_form(at):
    """Bytes that mean nothing are zero, even under a fitting checksum."""
    data = bytearray(ONE_BINDING.pack())
    data[at] ^= 0x80
    with pytest.raises(BindingError):
        Binding.unpack(resealed(bytes(data)))


@pytest.mark.parametrize(
    "change",
    [
        {"plan": "ab"},
        {"plan": "AB" * 32},
        {"plan": "xy" * 32},
        {"restore_sha256": ""},
        {"secret": ""},
        {"secret": "ab" * 32},
        {"secret": "AB" * 16},
        {"secret": "xy" * 16},
        {"run_id": "one"},
        {"mode": "dance"},
        {"epoch": -1},
        {"target": 2**53},
        {"port": 65536},
        {"port": -1},
        {"address": "localhost"},
        {"parent_address": "localhost"},
        {"parent_port": 65536},
        {"address": "fe80::1%eth0"},
    ],
)
def test_values_without_a_place_are_refused(change):
    with pytest.raises(BindingError):
        replace(ONE_BINDING, **change).pack()


WITHOUT_SECRET = {name: value for name, value in ONE_BINDING.as_json().items() if name != "secret"}


@pytest.mark.parametrize(
    "value", [{}, {"plan": "ab" * 32}, ONE_BINDING.as_json() | {"more": 1}, WITHOUT_SECRET], ids=str
)
def test_other_names_are_refused(value):
    with pytest.raises(BindingError):
        Binding.from_json(value)


def test_the_layout_is_the_documented_one():
    given_all = {"restore_sha256": "ef" * 32, "address": "2001:db8::7", "parent_address": "10.0.0.9"}
    data = replace(ONE_BINDING, **given_all, parent_port=4001, mesh=True).pack()
    assert data[:12] == b"ORCHBND1\3\0\0\0"
    assert data[24:56] == b"\xab" * 32
    assert data[56:88] == b"\xcd" * 32
    assert data[88:120] == b"\xef" * 32
    numbers = [int.from_bytes(data[at : at + 8], "little") for at in range(136, 192, 8)]
    assert numbers == [1, 5, 0, 0, 1000, 2000, 3000]
    assert (data[192], int.from_bytes(data[196:200], "little")) == (6, 4000)
    assert data[200:216] == ipaddress.ip_address("2001:db8::7").packed
    assert data[216:232] == b"\x5e" * 16
    assert (data[232], int.from_bytes(data[236:240], "little")) == (4, 4001)
    assert data[240:256] == ipaddress.ip_address("10.0.0.9").packed + bytes(12)
    assert data[256:480] == b"\1" + bytes(223)
    card = DeviceBinding(5, "GPU-01020304-0506-0708-090a-0b0c0d0e0f10", is_shadowed=True, is_simulated=True)
    device = replace(ONE_BINDING, device=card).pack()
    assert device[260:268] == bytes([1 + 4 + 8, 0, 0, 0, 5, 0, 0, 0])
    assert device[268:284] == bytes(range(1, 17))
    nobody = ONE_BINDING.pack()
    assert nobody[232:256] == b"\4" + bytes(23)


@pytest.mark.parametrize(
    "device",
    [
        DeviceBinding(248, None),
        DeviceBinding(-1, None),
        DeviceBinding(0, "01020304-0506-0708-090a-0b0c0d0e0f10"),
        DeviceBinding(0, "GPU-01020304-0506-0708-090A-0B0C0D0E0F10"),
    ],
    ids=str,
)
def test_a_card_that_cannot_be_bound_is_refused(device):
    with pytest.raises(BindingError, match="got"):
        replace(ONE_BINDING, device=device).pack()
