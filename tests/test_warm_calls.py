"""Calls like one before: what is remembered of it must fit, or not be used. Needs no GPU."""

import fastgemm
import numpy as np
import pytest
from described import integers
from fake_gpu import on_fake_gpu, on_gpu

STREAM = 0x7000


def gemm(a, b, out, **keywords):
    arrays = {name: on_gpu(keywords.pop(name)) for name in ("c",) if name in keywords}
    fastgemm.gemm(on_gpu(a), on_gpu(b), out=on_gpu(out), stream=STREAM, **arrays, **keywords)
    return out


@on_fake_gpu
def test_operands_that_were_one_array_may_be_two(driver):
    """Also where D's columns are contiguous, so that A and B change places."""
    for order in "CF":
        x, y = integers((32, 32)), integers((32, 32), seed=1)
        d = np.zeros((32, 32), np.float16, order=order)
        for a, b in ((x, x), (x, y), (y, x), (y, y)):
            np.testing.assert_array_equal(gemm(a, b, d), a @ b)
            np.testing.assert_array_equal(gemm(a, b, d, alpha=2.0), 2 * (a @ b))


@on_fake_gpu
def test_memory_that_overlaps_is_refused_after_memory_that_did_not(driver):
    memory = integers((96, 32))
    a, b, d = memory[:32], memory[32:64], memory[64:]
    for _ in range(3):
        gemm(a.copy(), b.copy(), d)
    with pytest.raises(ValueError, match="D overlaps A"):
        gemm(memory[48:80], b.copy(), d)
    with pytest.raises(ValueError, match="D overlaps B"):
        gemm(a.copy(), d, d)
    with pytest.raises(ValueError, match="D overlaps C"):
        gemm(a.copy(), b.copy(), d, c=memory[48:80])


@on_fake_gpu
def test_c_may_be_d_or_not(driver):
    a, b, c = integers((32, 32)), integers((32, 32), seed=1), integers((32, 32), seed=2)
    for _ in range(3):
        d = c.copy()
        np.testing.assert_array_equal(gemm(a, b, d, c=d), a @ b + c)
        np.testing.assert_array_equal(gemm(a, b, d, c=c, beta=2.0), a @ b + 2 * c)
        np.testing.assert_array_equal(gemm(a, b, d), a @ b)


@on_fake_gpu
def test_strides_alignment_and_configs_are_told_apart(driver):
    """Each is a kernel of its own, and is found again."""
    wide = integers((33, 65))
    b, d = integers((32, 32), seed=1), np.zeros((32, 32), np.float16)
    small = fastgemm.GemmConfig(family="sm80", block_m=64, block_n=64)
    for _ in range(2):
        for a in (wide[:32, :32].copy(), wide[:32, :32], wide[1:, 1:33], wide[:32, 1:64:2]):
            np.testing.assert_array_equal(gemm(a, b, d), a @ b)
            np.testing.assert_array_equal(gemm(a, b, d, config=small), a @ b)
        loads = driver.loads
    for a in (wide[:32, :32], wide[1:, 1:33]):
        gemm(a, b, d)
    assert driver.loads == loads


@on_fake_gpu
def test_every_call_counts_as_a_look_up_and_clearing_forgets(driver):
    a, b, d = integers((32, 32)), integers((32, 32), seed=1), np.zeros((32, 32), np.float16)
    gemm(a, b, d)
    before = fastgemm.cache_info().hits
    for _ in range(5):
        gemm(a, b, d)
    assert (fastgemm.cache_info().hits - before, driver.loads) == (5, 1)
    fastgemm.clear_cache()
    np.testing.assert_array_equal(gemm(a, b, d), a @ b)
    assert driver.loads == 2


@on_fake_gpu
def test_a_hundred_thousand_calls_leave_nothing_behind(driver):
    driver.computes = 0
    hold = integers((32, 32)), integers((32, 32), seed=1), np.zeros((32, 32), np.float16)
    a, b, out = producers = [on_gpu(x) for x in hold]

    def resident():
        with open("/proc/self/statm") as file:
            return 4096 * int(file.read().split()[1])

    def calls(count):
        for _ in range(count):
            fastgemm.gemm(a, b, out=out, stream=STREAM)
            for producer in producers:  # what the stub itself remembers
                producer.calls.clear()
                producer.kept.clear()

    calls(2000)
    before = resident()
    calls(100_000)
    assert resident() - before < 1 << 20
