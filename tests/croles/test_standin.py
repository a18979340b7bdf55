"""The stand-in's driver: what it computes, what it keeps apart, what it refuses, what it counts."""

from __future__ import annotations

from standin_bench import CARD, HEAD, OTHER, doubles, kernel

from orchestrator.build import standin


def test_a_kernel_computes_in_the_card_s_memory(driver):
    driver = driver()
    driver.begin()
    body = "ld.global.f64 f0,[a1]; mul.rn.f64 f0,f0,f0; st.global.f64 [a1],f0; ret;"
    at = driver.put(doubles(*range(256)))
    assert driver.launch(driver.function(HEAD + kernel(body)), at, grid=2, block=128) == 0
    assert driver.get(at, 2048) == doubles(*(value * value for value in range(256)))
    other, ours = driver.calls()
    assert other == standin.Calls(OTHER.minor, 0, 0, 0, 0, 0, 0, 0, 0)
    assert ours == standin.Calls(CARD.minor, 10, 1, 1, 2048, 2048, 2048, 0, 0)


def test_what_is_not_known_is_refused(driver):
    driver = driver()
    driver.begin()
    assert driver.load(HEAD + kernel("ret;"))[0] == 0
    for body in (
        "add.f64 f0,f0,f1; ret;",
        "fma.rn.f64 f0,f0,f1,f2; ret;",
        "add.rn.ftz.f64 f0,f0,f1; ret;",
        "div.approx.f64 f0,f0,f1; ret;",
        "bar.sync 0; ret;",
    ):
        assert driver.load(HEAD + kernel(body))[0] == 218, body
