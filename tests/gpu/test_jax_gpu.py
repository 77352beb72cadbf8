"""fastgemm.jax on a GPU: the kernels inside of jit, with derivatives, workspaces and a model."""

import functools
import sys

import fastgemm
import numpy as np
import pytest
from frameworks import MAKERS
from native import ROOT

sys.path.append(str(ROOT / "bench"))
pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def jax():
    return MAKERS["jax"]().jax


@pytest.fixture(scope="module")
def fj(jax):
    import fastgemm.jax

    return fastgemm.jax


@pytest.fixture
def integers(jax):
    def make(*shape, dtype="bfloat16", seed=0):
        values = np.random.default_rng(seed).integers(-2, 3, shape)
        return jax.device_put(values.astype(jax.numpy.dtype(dtype)), jax.devices("cuda")[0])

    return make


def exactly(x, y):
    np.testing.assert_array_equal(np.asarray(x, np.float64), np.asarray(y, np.float64))


@pytest.mark.parametrize("flags", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("size", [(64, 48, 80), (130, 50, 70), (1, 257, 33), (16, 4096, 4096)])
def test_products_inside_of_jit_are_exact(jax, fj, integers, size, flags):
    m, n, k = size
    a = integers(*((k, m) if flags[0] else (m, k)))
    b = integers(*((n, k) if flags[1] else (k, n)), seed=1)

    @jax.jit
    def product(a, b):
        return fj.gemm(
            a + 0, b, transpose_a=flags[0], transpose_b=flags[1], out_dtype="float32"
        )

    host_a, host_b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    expected = (host_a.T if flags[0] else host_a) @ (host_b.T if flags[1] else host_b)
    for _ in range(3):
        exactly(product(a, b), expected)


@pytest.mark.parametrize(
    ("a_shape", "b_shape"),
    [((3, 64, 128), (128, 48)), ((3, 64, 128), (3, 128, 48)), ((64, 128), (3, 128, 48))],
)
def test_batches_and_their_gradients(jax, fj, integers, a_shape, b_shape):
    a, b = integers(*a_shape), integers(*b_shape, seed=1)
    wide = a.astype("float32"), b.astype("float32")

    def loss(product, a, b):
        return product(a, b).astype("float32").sum()

    mine = jax.jit(jax.grad(functools.partial(loss, fj.gemm), (0, 1)))(a, b)
    with jax.default_matmul_precision("highest"):
        theirs = jax.grad(functools.partial(loss, jax.numpy.matmul), (0, 1))(*wide)
    for g, e in zip(mine, theirs, strict=True):
        exactly(g, e.astype(g.dtype))


def test_addends_and_vmap(jax, fj, integers):
    x, weight, bias = integers(5, 16, 128), integers(48, 128, seed=1), integers(48, seed=2)
    d = jax.jit(jax.vmap(fj.linear, (0, None, None)))(x, weight, bias)
    expected = np.asarray(x, np.float64) @ np.asarray(weight, np.float64).T
    exactly(d, (expected + np.asarray(bias, np.float64)).astype(d.dtype))


@pytest.mark.parametrize("shape", [(64, 128), (3, 16, 128), (128,)])
def test_bias_and_activation_are_part_of_the_kernel(jax, fj, integers, shape):
    x, weight, bias = integers(*shape), integers(48, 128, seed=1), integers(48, seed=2)
    wide = [np.asarray(t, np.float64) for t in (x, weight, bias)]
    expected = np.maximum(wide[0] @ wide[1].T + wide[2], 0)

    def layer(x, weight, bias):
        return fj.linear(x, weight, bias, activation="relu", out_dtype="float32")

    exactly(jax.jit(layer)(x, weight, bias), expected)
    gradient = jax.jit(jax.grad(lambda bias: layer(x, weight, bias).sum()))(bias)
    exactly(gradient, (expected > 0).reshape(-1, 48).sum(0).astype(bias.dtype))
    d = jax.jit(lambda x, w, c: fj.gemm(x, w, c=c, beta=-2.0, activation="relu", transpose_b=True))(
        x, weight, bias
    )
    relu = np.maximum(wide[0] @ wide[1].T - 2 * wide[2], 0)
    exactly(d, relu.astype(x.dtype))


@pytest.mark.parametrize("split_k", [1, 4])
def test_with_and_without_a_workspace(jax, fj, integers, split_k):
    a, b = integers(64, 8192), integers(8192, 64, seed=1)
    config = fastgemm.GemmConfig(split_k=split_k)

    @jax.jit
    def chain(a, b):
        d = fj.gemm(a, b, config=config, out_dtype="float32")
        return d + fj.gemm(a, b, config=config, out_dtype="float32")

    expected = 2 * (np.asarray(a, np.float64) @ np.asarray(b, np.float64))
    for _ in range(5):
        exactly(chain(a, b), expected)


def test_kernels_are_compiled_when_a_program_is_lowered(jax, fj, integers):
    fastgemm.clear_cache(disk=True)
    a, b = integers(72, 136), integers(136, 56, seed=1)
    config = fastgemm.GemmConfig(family="sm80", block_m=32, block_n=32, block_k=32, num_stages=3)
    before = fastgemm.cache_info().compiles
    lowered = jax.jit(functools.partial(fj.gemm, config=config)).lower(a, b)
    compiles = fastgemm.cache_info().compiles
    assert compiles == before + 1
    exactly(lowered.compile()(a, b).astype("float32"), (a.astype("float32") @ b).astype(a.dtype))
    assert fastgemm.cache_info().compiles == compiles


@pytest.fixture
def chain(jax, fj, integers):
    """A program of as many products as XLA makes a CUDA graph of, its operands, its result."""
    operands = integers(64, 64), integers(64, 64, seed=1)

    @jax.jit
    def run(a, b):
        for _ in range(8):
            a = fj.gemm(a, b) % 3
        return a

    a, b = (np.asarray(x, np.float64) for x in operands)
    for _ in range(8):
        a = a @ b % 3
    return run, operands, a


def test_kernels_dropped_after_lowering_are_loaded_again(chain):
    run, operands, expected = chain
    results = [run(*operands)]  # kept: at another address, XLA captures anew
    for _ in range(4):
        fastgemm.clear_cache()
        results.append(run(*operands))
    for result in results:
        exactly(result, expected)


def test_xla_replays_the_products_of_a_program_as_a_graph(chain):
    run, operands, expected = chain
    entered = []
    for _ in range(12):
        before = fastgemm.cache_info().hits
        exactly(run(*operands), expected)
        entered.append(fastgemm.cache_info().hits - before)
    assert entered[0] >= 8
    assert 0 in entered[1:]


def test_a_failure_at_run_time_reaches_the_caller(jax, fj, integers):
    a = integers(64, 64)
    with pytest.raises(ValueError, match="shared"):
        config = fastgemm.GemmConfig(family="sm80", block_m=256, block_n=256, num_stages=9)
        jax.jit(functools.partial(fj.gemm, config=config))(a, a)
    exactly(jax.jit(fj.gemm)(a, a), jax.jit(lambda a: a @ a)(a))


def model(jax):
    from llama_block import Size, jax_weights

    size = Size(hidden=256, heads=8, kv_heads=2, inner=704, context=40)
    x = jax.random.normal(jax.random.key(1), (3, 24, 256)).astype("bfloat16")
    return size, jax_weights(size, "bfloat16", batch=3), x


def test_a_llama_block_and_its_training_step_agree_with_xla_s(jax, fj):
    from llama_block import jax_block

    size, weights, x = model(jax)

    def loss(linear, weights, x):
        y = jax_block(linear, size, weights, x).astype("float32")
        return (y**2).mean(), y

    results = []
    for linear in (lambda x, weight: x @ weight.T, fj.linear):
        step = jax.jit(jax.value_and_grad(functools.partial(loss, linear), has_aux=True))
        results.append(step(weights, x))
    ((_, theirs), expected), ((_, mine), gradients) = results
    np.testing.assert_allclose(mine, theirs, rtol=0.03, atol=0.03)
    for name, gradient in gradients.items():
        theirs = np.asarray(expected[name], np.float32)
        error = np.abs(np.asarray(gradient, np.float32) - theirs).max()
        assert error < 0.03 * np.abs(theirs).max(), name


def test_split_over_gpus(jax, fj, integers):
    if len(jax.devices("cuda")) < 2:
        pytest.skip("one GPU")
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    gpus = jax.devices("cuda")[:2]
    mesh = jax.make_mesh((2,), ("x",), axis_types=(AxisType.Auto,), devices=gpus)
    a, b = integers(64, 128), integers(128, 48, seed=1)
    for a_spec, b_spec in (((None, "x"), ("x",)), (("x",), (None,))):
        split_a = jax.device_put(a, NamedSharding(mesh, PartitionSpec(*a_spec)))
        split_b = jax.device_put(b, NamedSharding(mesh, PartitionSpec(*b_spec)))
        d = jax.jit(functools.partial(fj.gemm, out_dtype="float32"))(split_a, split_b)
        exactly(d, np.asarray(a, np.float64) @ np.asarray(b, np.float64))
