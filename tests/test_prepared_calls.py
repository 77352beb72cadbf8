"""prepare(), linear(), strict mode, captures: on a fake driver that computes. Needs no GPU."""

import gc
import weakref

import fastgemm
import numpy as np
import pytest
from described import integers
from fake_gpu import on_fake_gpu, on_gpu

STREAM = 0x7000


def prepared_product(**keywords):
    a, b, d = integers((8, 32)), integers((32, 16), seed=1), np.zeros((8, 16), np.float16)
    prepared = fastgemm.prepare(on_gpu(a), on_gpu(b), out=on_gpu(d), stream=STREAM, **keywords)
    return a, b, d, prepared


@on_fake_gpu
def test_a_prepared_call_computes_what_the_arrays_hold_then(driver):
    a, b, d, prepared = prepared_product(alpha=2.0)
    assert driver.launches == 0
    for _ in range(3):
        assert prepared() is prepared.out
        np.testing.assert_array_equal(d, 2 * (a @ b))
        a += 1
    assert (driver.launches, driver.loads, driver.stream) == (3, 1, STREAM)


@on_fake_gpu
def test_batches_that_need_several_launches_are_one_call(driver):
    a, b = integers((2, 1, 8, 32)), integers((1, 5, 32, 16), seed=1)
    d = np.zeros((2, 5, 8, 16), np.float16)
    prepared = fastgemm.prepare(on_gpu(a), on_gpu(b), out=on_gpu(d), stream=STREAM)
    prepared()
    np.testing.assert_array_equal(d, a @ b)
    assert driver.launches == 2


@on_fake_gpu
def test_rebinding_takes_arrays_of_the_same_form(driver):
    a, b, d, prepared = prepared_product()
    a2, d2 = a + 1, np.zeros_like(d)
    assert prepared.rebind(on_gpu(a2), out=on_gpu(d2)) is prepared
    prepared()
    np.testing.assert_array_equal(d2, a2 @ b)
    assert (d == 0).all()
    wrong = [integers((9, 32)), integers((8, 64))[:, ::2], integers((8, 32), np.float32)]
    for array in wrong:
        with pytest.raises((ValueError, TypeError)):
            prepared.rebind(a=on_gpu(array))
    with pytest.raises(ValueError, match="rebind.. needs arrays of the types, shapes"):
        prepared.rebind(on_gpu(np.zeros((16, 32), np.float16)[::2]))
    with pytest.raises(TypeError, match="unexpected keyword argument 'alpha'"):
        prepared.rebind(alpha=2)
    prepared()
    np.testing.assert_array_equal(d2, a2 @ b)


@on_fake_gpu
def test_a_prepared_call_keeps_its_arrays_and_lets_them_go(driver):
    a, b, d, prepared = prepared_product()
    kept = weakref.ref(prepared.out)
    gc.collect()
    assert kept() is prepared.out
    prepared.rebind(out=on_gpu(d))
    gc.collect()
    assert kept() is None
    kept = weakref.ref(prepared.out)
    del prepared
    gc.collect()
    assert kept() is None


@on_fake_gpu
def test_what_cannot_be_prepared_is_refused(driver):
    a = integers((4, 4))
    with pytest.raises(ValueError, match="needs arrays on a GPU"):
        fastgemm.prepare(a, a, out=a.copy())
    with pytest.raises(ValueError, match="pass stream="):
        fastgemm.prepare(on_gpu(a), on_gpu(a), out=on_gpu(a.copy()))
    with pytest.raises(TypeError, match="cannot make a result .* pass out="):
        fastgemm.prepare(on_gpu(a), on_gpu(a), stream=STREAM)
    *_, prepared = prepared_product()
    with pytest.raises(TypeError, match="takes no arguments"):
        prepared(a)
    with pytest.raises(TypeError, match="cannot create"):
        fastgemm.PreparedGemm()


@on_fake_gpu
def test_a_cold_call_in_a_capture_names_the_warm_up_and_leaves_the_process_usable(driver):
    a, b, d = integers((8, 32)), integers((32, 16), seed=1), np.zeros((8, 16), np.float16)

    def call():
        fastgemm.gemm(on_gpu(a), on_gpu(b), out=on_gpu(d), stream=STREAM)

    driver.capturing = 1
    with pytest.raises(fastgemm.ColdCallError, match=r"8x16x32 .*Warm up first.*prepare\(\)"):
        call()
    assert driver.launches == 0
    driver.capturing = 0
    call()
    driver.capturing = 1
    call()
    np.testing.assert_array_equal(d, a @ b)
    assert driver.launches == 2


@on_fake_gpu
def test_strict_mode_compiles_in_prepare_alone(driver):
    fastgemm.set_strict(True)
    a, b, d = integers((8, 32)), integers((32, 16), seed=1), np.zeros((8, 16), np.float16)
    with pytest.raises(fastgemm.ColdCallError, match=r"strict mode \(FASTGEMM_STRICT\)"):
        fastgemm.gemm(on_gpu(a), on_gpu(b), out=on_gpu(d), stream=STREAM)
    prepared_product()
    fastgemm.gemm(on_gpu(a), on_gpu(b), out=on_gpu(d), stream=STREAM)
    np.testing.assert_array_equal(d, a @ b)
    fastgemm.set_strict(False)


@on_fake_gpu
def test_a_warm_up_covers_later_calls(driver):
    shapes = [(m, 16, 32) for m in (1, 8, 64, 300)]
    compiled = fastgemm.warmup(shapes, dtype="float16", layout="nn", threads=2)
    assert compiled == fastgemm.cache_info().compiles >= 1
    assert fastgemm.warmup(shapes, dtype="float16", layout="nn") == 0
    assert driver.launches == 0
    loads = driver.loads
    driver.capturing = 1
    b = integers((32, 16), seed=1)
    for m, *_ in shapes:
        a, d = integers((m, 32)), np.zeros((m, 16), np.float16)
        fastgemm.gemm(on_gpu(a), on_gpu(b), out=on_gpu(d), stream=STREAM)
        np.testing.assert_array_equal(d, a @ b)
    assert driver.loads == loads
    with pytest.raises(fastgemm.DeviceError, match="no device 5"):
        fastgemm.warmup(shapes, device=5)


@on_fake_gpu
def test_linear_takes_the_weight_as_models_keep_it(driver):
    x, weight, bias = integers((2, 3, 32)), integers((16, 32), seed=1), integers((16,), seed=2)
    d = np.zeros((2, 3, 16), np.float16)
    fastgemm.linear(on_gpu(x), on_gpu(weight), out=on_gpu(d), stream=STREAM)
    np.testing.assert_array_equal(d, x @ weight.T)
    fastgemm.linear(on_gpu(x), on_gpu(weight), on_gpu(bias), out=on_gpu(d), stream=STREAM)
    np.testing.assert_array_equal(d, x @ weight.T + bias)
    assert driver.launches == 2


@on_fake_gpu
def test_host_arrays_go_through_the_gpu(driver):
    x, weight = integers((3, 32)), integers((16, 32), seed=1)
    np.testing.assert_array_equal(fastgemm.linear(x, weight), x @ weight.T)
    np.testing.assert_array_equal(fastgemm.gemm(x, weight.T, out_dtype="float32"), x @ weight.T)
    assert driver.allocations == 0


def test_linear_names_what_is_wrong():
    x = integers((3, 32))
    with pytest.raises(ValueError, match=r"weight has shape \(32,\); expected a matrix"):
        fastgemm.linear(x, x[0])
    with pytest.raises(ValueError, match=r"x of shape \(3, 32\) and weight.T of shape \(31, 5\)"):
        fastgemm.linear(x, integers((5, 31)))
    with pytest.raises(TypeError, match=r"linear\(\) needs x and weight"):
        fastgemm.linear(x)
    with pytest.raises(TypeError, match=r"linear\(\) got an unexpected keyword argument 'alpha'"):
        fastgemm.linear(x, x, alpha=2)
