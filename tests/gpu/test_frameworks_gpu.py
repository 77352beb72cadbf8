"""gemm() with the arrays of every framework on a real GPU."""

import fastgemm
import numpy as np
import pytest
from frameworks import BF16, HALF, MAKERS, exact, integers

pytestmark = pytest.mark.gpu
DTYPES = pytest.mark.parametrize("dtype", [HALF, BF16], ids=["float16", "bfloat16"])


@pytest.fixture(params=MAKERS)
def framework(request):
    return MAKERS[request.param]()


@pytest.fixture
def torch():
    return MAKERS["torch"]().torch


@DTYPES
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("size", [(64, 48, 80), (130, 50, 70), (1, 257, 33)])
def test_products_are_exact_and_in_the_callers_framework(framework, dtype, layout, size):
    m, n, k = size
    a = integers((m, k) if layout[0] == "n" else (k, m), dtype)
    b = integers((k, n) if layout[1] == "n" else (n, k), dtype, seed=1)
    left, right = framework.put(a), framework.put(b)
    left = left if layout[0] == "n" else left.T
    right = right if layout[1] == "n" else right.T
    a, b = (a if layout[0] == "n" else a.T), (b if layout[1] == "n" else b.T)
    d = fastgemm.gemm(left, right)
    assert framework.is_own(d)
    assert framework.get(d).dtype == dtype
    np.testing.assert_array_equal(framework.get(d), exact(a, b))
    wide = framework.get(fastgemm.gemm(left, right, out_dtype="float32"))
    np.testing.assert_array_equal(wide, exact(a, b, np.float32))
    assert wide.dtype == np.float32


@DTYPES
def test_c_alpha_and_beta(framework, dtype):
    a, b, c = integers((40, 24), dtype), integers((24, 56), dtype, 1), integers((40, 56), dtype, 2)
    operands = [framework.put(x) for x in (a, b, c)]
    d = fastgemm.gemm(*operands[:2], c=operands[2], alpha=2, beta=-0.5)
    np.testing.assert_array_equal(framework.get(d), exact(a, b, c=c, alpha=2, beta=-0.5))
    d = fastgemm.gemm(*operands[:2], c=operands[2][:1])
    np.testing.assert_array_equal(framework.get(d), exact(a, b, c=c[:1], beta=1))


@pytest.mark.parametrize(
    ("a_shape", "b_shape"),
    [
        ((70,), (70,)),
        ((70,), (70, 30)),
        ((20, 70), (70,)),
        ((5, 20, 70), (70, 30)),
        ((20, 70), (5, 70, 30)),
        ((2, 1, 20, 70), (1, 5, 70, 30)),
        ((70000, 2, 3), (3, 2)),
        ((70000, 2, 3), (70000, 3, 2)),
    ],
)
def test_vectors_batches_and_broadcasting(framework, a_shape, b_shape):
    a, b = integers(a_shape), integers(b_shape, seed=1)
    d = framework.get(fastgemm.gemm(framework.put(a), framework.put(b)))
    expected = np.asarray(exact(a, b))
    assert d.shape == expected.shape
    np.testing.assert_array_equal(d, expected)


def test_empty_products(framework):
    for m, n, k in [(0, 8, 8), (8, 0, 8), (0, 0, 0)]:
        d = fastgemm.gemm(framework.put(integers((m, k))), framework.put(integers((k, n))))
        assert framework.is_own(d)
        assert framework.get(d).shape == (m, n)


def test_k_0_gives_beta_c_and_never_old_memory(framework):
    a, b, c = integers((40, 0)), integers((0, 24)), integers((40, 24), seed=2)
    a, b = framework.put(a), framework.put(b)
    np.testing.assert_array_equal(framework.get(fastgemm.gemm(a, b)), np.zeros((40, 24)))
    d = framework.get(fastgemm.gemm(a, b, c=framework.put(c), beta=2))
    np.testing.assert_array_equal(d, 2 * c)


@pytest.mark.parametrize("name", ["numpy", "torch", "cupy"])
@pytest.mark.parametrize("transposed", [False, True])
def test_out_is_written_everywhere_inside_and_nowhere_outside(name, transposed):
    framework = MAKERS[name]()
    a, b = integers((33, 40)), integers((40, 17), seed=1)
    rows, cols = (17, 33) if transposed else (33, 17)
    memory = framework.put(np.full((rows + 4, cols + 6), np.nan, HALF))
    view = memory[2:-2, 3:-3]
    out = view.T if transposed else view
    assert fastgemm.gemm(framework.put(a), framework.put(b), out=out) is out
    np.testing.assert_array_equal(framework.get(out), exact(a, b))
    written = np.isfinite(framework.get(memory))
    assert written.sum() == 33 * 17


@pytest.mark.parametrize("name", ["numpy", "torch", "cupy"])
def test_out_is_not_read_where_beta_is_0(name):
    framework = MAKERS[name]()
    a, b = integers((33, 40)), integers((40, 17), seed=1)
    out = framework.put(np.full((33, 17), np.nan, HALF))
    fastgemm.gemm(framework.put(a), framework.put(b), c=out, beta=0, out=out)
    np.testing.assert_array_equal(framework.get(out), exact(a, b))


@pytest.mark.parametrize("name", ["numpy", "torch", "cupy"])
def test_accumulation_in_place(name):
    framework = MAKERS[name]()
    a, b, start = integers((33, 40)), integers((40, 17), seed=1), integers((33, 17), seed=2)
    out = framework.put(start.copy())
    for _ in range(3):
        fastgemm.gemm(framework.put(a), framework.put(b), c=out, out=out)
    np.testing.assert_array_equal(framework.get(out), 3 * exact(a, b, np.float64) + start)


@DTYPES
@pytest.mark.parametrize(
    "view",
    [np.s_[:, :16], np.s_[::2, 4:20], np.s_[:1, :16], np.s_[3:, 1:], np.s_[:, ::3], np.s_[2:3, :]],
)
def test_views_are_honoured(framework, dtype, view):
    base = integers((8, 24), dtype)
    x = framework.put(base)
    for a, host in ((x[view], base[view]), (x.T[view[::-1]], base.T[view[::-1]])):
        b = integers((host.shape[1], 40), dtype, seed=1)
        d = fastgemm.gemm(a, framework.put(b))
        np.testing.assert_array_equal(framework.get(d), exact(host, b))


@pytest.mark.parametrize("name", ["numpy", "cupy"])
@pytest.mark.parametrize("flip", [np.s_[::-1], np.s_[:, ::-1], np.s_[::-1, ::-1]])
def test_negative_strides_are_honoured(name, flip):
    framework = MAKERS[name]()
    a, b = integers((40, 40)), integers((40, 40), seed=1)
    d = fastgemm.gemm(framework.put(a)[flip], framework.put(b)[flip])
    np.testing.assert_array_equal(framework.get(d), exact(a[flip], b[flip]))


@DTYPES
@pytest.mark.parametrize("a_name", ["torch", "cupy", "jax"])
@pytest.mark.parametrize("b_name", ["torch", "cupy", "jax"])
def test_frameworks_mix_on_one_gpu(a_name, b_name, dtype):
    first, second = MAKERS[a_name](), MAKERS[b_name]()
    a, b = integers((48, 64), dtype), integers((64, 32), dtype, seed=1)
    d = fastgemm.gemm(first.put(a), second.put(b))
    assert first.is_own(d)
    np.testing.assert_array_equal(first.get(d), exact(a, b))


def test_read_only_inputs_are_fine_and_read_only_outs_are_not():
    a = integers((16, 16))
    a.flags.writeable = False
    b = np.broadcast_to(integers((16,)), (16, 16))
    np.testing.assert_array_equal(fastgemm.gemm(a, b, c=b), exact(a, b, c=b, beta=1))
    with pytest.raises(ValueError, match="read-only"):
        fastgemm.gemm(a, b, out=a)


def test_a_jax_array_is_never_written():
    jax = MAKERS["jax"]()
    x, out = jax.put(integers((16, 16))), jax.put(np.full((16, 16), 7, HALF))
    with pytest.raises(TypeError, match="immutable"):
        fastgemm.gemm(x, x, out=out)
    assert (jax.get(out) == 7).all()


def test_host_tensors_of_torch_and_jax_go_through_the_gpu(torch):
    a, b = integers((40, 24)), integers((24, 56), seed=1)
    for pinned in (False, True):
        x = torch.from_numpy(a).pin_memory() if pinned else torch.from_numpy(a)
        d = fastgemm.gemm(x, torch.from_numpy(b))
        assert not d.is_cuda
        np.testing.assert_array_equal(d.numpy(), exact(a, b))
    jax = pytest.importorskip("jax")
    cpu = jax.devices("cpu")[0]
    d = fastgemm.gemm(jax.device_put(a, cpu), jax.device_put(b, cpu))
    assert d.devices() == {cpu}
    np.testing.assert_array_equal(np.asarray(d), exact(a, b))


def test_managed_memory_is_used_where_it_lies():
    cupy = MAKERS["cupy"]().cupy
    a, b = integers((40, 24)), integers((24, 56), seed=1)
    with cupy.cuda.using_allocator(cupy.cuda.malloc_managed):
        x = cupy.asarray(a)
    np.testing.assert_array_equal(cupy.asnumpy(fastgemm.gemm(x, cupy.asarray(b))), exact(a, b))


def test_parameters_under_no_grad(torch):
    linear = torch.nn.Linear(64, 48, bias=False, device="cuda", dtype=torch.bfloat16)
    x = torch.ones(5, 64, device="cuda", dtype=torch.bfloat16)
    assert fastgemm.gemm(x, linear.weight.T).requires_grad
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            d = fastgemm.gemm(x, linear.weight.T, out_dtype="float32")
            expected = x.double() @ linear.weight.double().T
            torch.testing.assert_close(d.double(), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", ["torch", "cupy", "jax"])
@pytest.mark.parametrize("role", ["a", "b", "c", "out"])
def test_host_and_gpu_do_not_mix_and_the_next_call_works(name, role):
    framework = MAKERS[name]()
    host = integers((32, 32))
    operands = {key: framework.put(host) for key in ("a", "b", "c", "out")}
    if name == "jax":
        del operands["out"]
    for one, others in ((host, operands), (framework.put(host), dict.fromkeys("abc", host))):
        with pytest.raises((ValueError, TypeError), match="different places|immutable"):
            fastgemm.gemm(**{**others, role: one})
    d = fastgemm.gemm(framework.put(host), framework.put(host))
    np.testing.assert_array_equal(framework.get(d), exact(host, host))


@pytest.mark.parametrize("role", ["a", "b", "c", "out"])
def test_two_gpus_do_not_mix(torch, role):
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    operands = {key: torch.ones(32, 32, device="cuda:0").half() for key in ("a", "b", "c", "out")}
    operands[role] = operands[role].to("cuda:1")
    with pytest.raises(ValueError, match=r"cuda:1.*move them to one device"):
        fastgemm.gemm(**operands)


def test_the_operands_gpu_is_used_and_the_callers_stays_current(torch):
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    a = torch.ones(32, 32, device="cuda:1", dtype=torch.float16)
    with torch.cuda.device(0):
        d = fastgemm.gemm(a, a)
        assert torch.cuda.current_device() == 0
    assert d.device == a.device
    assert (d == 32).all()


def test_a_config_that_does_not_fit_is_refused_and_nothing_is_written(torch):
    a = torch.ones(64, 64, device="cuda", dtype=torch.float16)
    out = torch.full_like(a, 7)
    before = fastgemm.cache_info()
    config = fastgemm.GemmConfig(family="sm80", block_m=256, block_n=256, block_k=64, num_stages=9)
    with pytest.raises(ValueError, match="shared"):
        fastgemm.gemm(a, a, out=out, config=config)
    assert (out == 7).all()
    assert fastgemm.cache_info().loaded == before.loaded
