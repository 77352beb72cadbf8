"""fastgemm.jax on JAX's host devices: jit, vmap, derivatives, shardings, and what XLA is told."""

import functools
import shutil
import subprocess
from pathlib import Path

import fastgemm
import numpy as np
import pytest
from fake_gpu import on_fake_gpu
from native import ROOT, need

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
fj = pytest.importorskip("fastgemm.jax")
from jax.sharding import AxisType, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402


@pytest.fixture(autouse=True)
def on_the_host():
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def integers(*shape, dtype="float16", seed=0):
    """Small integers: their products and sums are exact in every dtype."""
    return jnp.asarray(np.random.default_rng(seed).integers(-2, 3, shape), dtype)


def exactly(x, y):
    assert x.shape == y.shape
    np.testing.assert_array_equal(np.asarray(x, np.float64), np.asarray(y, np.float64))


SHAPES = [
    ((4, 8), (8, 6)),
    ((8,), (8,)),
    ((8,), (8, 6)),
    ((4, 8), (8,)),
    ((3, 4, 8), (8, 6)),
    ((3, 4, 8), (8,)),
    ((4, 8), (3, 8, 6)),
    ((8,), (3, 8, 6)),
    ((3, 4, 8), (3, 8, 6)),
    ((2, 1, 4, 8), (3, 8, 6)),
    ((2, 1, 4, 8), (1, 3, 8, 6)),
    ((0, 8), (8, 6)),
    ((4, 0), (0, 6)),
]


@pytest.mark.parametrize(("dtype", "transposed"), [("float16", False), ("bfloat16", True)])
@pytest.mark.parametrize(("a_shape", "b_shape"), SHAPES)
def test_results_and_gradients_are_those_of_matmul(a_shape, b_shape, dtype, transposed):
    a, b = integers(*a_shape, dtype=dtype), integers(*b_shape, dtype=dtype, seed=1)

    def stored(x):
        return x.mT if transposed and x.ndim > 1 else x

    def mine(a, b):
        flags = {"transpose_a": transposed, "transpose_b": transposed}
        return fj.gemm(a, b, alpha=0.5, out_dtype="float32", **flags)

    def theirs(a, b):
        return 0.5 * jnp.matmul(stored(a), stored(b))

    a, b = stored(a), stored(b)
    wide = a.astype("float32"), b.astype("float32")
    exactly(jax.jit(mine)(a, b), theirs(*wide))
    cotangent = integers(*theirs(*wide).shape, dtype="float32", seed=2)
    d, back = jax.vjp(mine, a, b)
    _, expected = jax.vjp(theirs, *wide)
    for x, y in zip(back(cotangent), expected(cotangent), strict=True):
        assert x.dtype == dtype
        exactly(x, y)
    tangents = integers(*a.shape, dtype=dtype, seed=3), integers(*b.shape, dtype=dtype, seed=4)
    _, d = jax.jvp(mine, (a, b), tangents)
    exactly(d, jax.jvp(theirs, wide, tuple(t.astype("float32") for t in tangents))[1])


@pytest.mark.parametrize("c_shape", [(3, 4, 6), (4, 6), (6,), (1, 6), (4, 1), ()])
def test_addends(c_shape):
    a, b, c = integers(3, 4, 8), integers(8, 6, seed=1), integers(*c_shape, seed=2)

    def mine(a, b, c):
        return fj.gemm(a, b, c=c, beta=-2.0)

    def theirs(a, b, c):
        return a @ b - 2 * c

    wide = tuple(x.astype("float32") for x in (a, b, c))
    exactly(mine(a, b, c), theirs(*wide))
    d, back = jax.vjp(mine, a, b, c)
    cotangent = integers(*d.shape, seed=3)
    expected = jax.vjp(theirs, *wide)[1](cotangent.astype("float32"))
    for x, y in zip(back(cotangent), expected, strict=True):
        exactly(x, y)


def test_addends_where_a_vector_lacks_a_dimension():
    c = integers(5, 1, seed=2)
    a, b = integers(5, 2, 3), integers(3, seed=1)
    exactly(fj.gemm(a, b, c=c), a @ b + c)
    a, b, c = integers(3), integers(3, 4, seed=1), integers(4, seed=2)
    exactly(fj.gemm(a, b, c=c), a @ b + c)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_linear_layers_and_their_gradients(activation):
    x, weight = integers(5, 8, dtype="bfloat16"), integers(6, 8, dtype="bfloat16", seed=1)
    bias = integers(6, dtype="bfloat16", seed=2)

    def mine(x, weight, bias):
        y = fj.linear(x, weight, bias, activation=activation)
        return y.astype("float32").sum()

    def theirs(x, weight, bias):
        return fj.ACTIVATIONS[activation](x @ weight.T + bias).astype("float32").sum()

    gradients = jax.grad(mine, argnums=(0, 1, 2))(x, weight, bias)
    expected = jax.grad(theirs, argnums=(0, 1, 2))(x, weight, bias)
    for g, e in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(np.float32(g), np.float32(e), rtol=2e-2, atol=2e-2)


def test_second_derivatives():
    a, b = integers(3, 4), integers(4, 2, seed=1)

    def mine(a, b):
        return (fj.gemm(a, b, out_dtype="float32") ** 2).sum()

    def theirs(a, b):
        return ((a @ b) ** 2).sum()

    hessian = jax.hessian(mine)(a, b)
    exactly(hessian, jax.hessian(theirs)(a.astype("float32"), b.astype("float32")))


@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (1, 2)])
@pytest.mark.parametrize(("a_shape", "b_shape"), [SHAPES[i] for i in (0, 1, 4, 7, 9)])
def test_vmap(a_shape, b_shape, in_axes):
    def mapped(shape, axis, seed):
        x = integers(5, *shape, seed=seed)
        return x[0] if axis is None else jnp.moveaxis(x, 0, axis)

    axes = tuple(
        axis if axis is None else min(axis, len(shape))
        for axis, shape in zip(in_axes, (a_shape, b_shape), strict=True)
    )
    a, b = mapped(a_shape, axes[0], 0), mapped(b_shape, axes[1], 1)
    exactly(jax.vmap(fj.gemm, axes)(a, b), jax.vmap(jnp.matmul, axes)(a, b))

    def loss(product, a, b):
        return product(a, b).astype("float32").sum()

    mine = jax.vmap(jax.grad(functools.partial(loss, fj.gemm), (0, 1)), axes)(a, b)
    theirs = jax.vmap(jax.grad(functools.partial(loss, jnp.matmul), (0, 1)), axes)(a, b)
    for x, y in zip(mine, theirs, strict=True):
        exactly(x, y)


def test_vmap_of_addends():
    x, weight, bias = integers(5, 4, 8), integers(6, 8), integers(5, 6)
    d = jax.vmap(fj.linear, (0, None, 0))(x, weight, bias)
    exactly(d, x @ weight.T + bias[:, None])


def test_fastgemm_gemm_and_linear_work_on_traced_values():
    a, b = integers(4, 8), integers(8, 6, seed=1)
    exactly(jax.jit(fastgemm.gemm)(a, b), a @ b)
    exactly(jax.jit(fastgemm.linear)(a, b.T), a @ b)
    gradient = jax.grad(lambda b: fastgemm.gemm(a, b).astype("float32").sum())(b)
    exactly(gradient, a.T @ jnp.ones((4, 6), "float16"))
    with pytest.raises(ValueError, match="out= is given, .* outside of the trace"):
        jax.jit(lambda a: fastgemm.gemm(a, a, out=np.empty((4, 4), "float16")))(a[:, :4])


def test_wrong_operands_are_named():
    a = integers(4, 8)
    with pytest.raises(ValueError, match=r"a of shape \(4, 8\) and b of shape \(4, 8\)"):
        fj.gemm(a, a)
    with pytest.raises(TypeError, match="unsupported dtypes: a float32, b float32"):
        fj.gemm(a.astype("float32"), a.astype("float32").T)
    with pytest.raises(ValueError, match=r"has shape \(5,\), which does not broadcast to \(4, 4\)"):
        fj.linear(a, a, integers(5))
    with pytest.raises(ValueError, match=r"weight has shape \(8,\); expected a matrix"):
        fj.linear(a, a[0])
    with pytest.raises(ValueError, match="unknown activation 'swish'; known are relu"):
        fj.linear(a, a, activation="swish")
    with pytest.raises(ValueError, match="beta is given without c"):
        fj.gemm(a, a.T, beta=1.0)


# Several devices.


def mesh(axis_type=AxisType.Auto):
    devices = jax.devices("cpu")
    need(len(devices) >= 8, "XLA_FLAGS asks for 8 host devices before JAX starts")
    return jax.make_mesh((2, 4), ("x", "y"), axis_types=(axis_type,) * 2, devices=devices[:8])


def collectives(compiled):
    names = ("all-reduce", "all-gather", "all-to-all", "collective-permute")
    return [name for name in names if f" {name}(" in compiled.as_text()]


@pytest.mark.parametrize(
    ("a_spec", "b_spec", "d_spec", "moves"),
    [
        (P("x"), P(None, "y"), P("x", "y"), []),
        (P(("x", "y")), P(), P(("x", "y")), []),
        (P(None, "y"), P("y"), P(), ["all-reduce"]),
        (P("x", "y"), P("y"), P("x"), ["all-reduce"]),
        (P(None, "y"), P("y", "x"), P(None, "x"), ["all-reduce"]),
        (P(), P(), P(), []),
    ],
)
def test_parts_are_multiplied_where_they_are(a_spec, b_spec, d_spec, moves):
    a, b = integers(16, 32), integers(32, 8, seed=1)
    here = mesh()
    split_a = jax.device_put(a, NamedSharding(here, a_spec))
    split_b = jax.device_put(b, NamedSharding(here, b_spec))
    compiled = jax.jit(fj.gemm).lower(split_a, split_b).compile()
    d = compiled(split_a, split_b)
    exactly(d, a @ b)
    assert d.sharding.is_equivalent_to(NamedSharding(here, d_spec), 2)
    assert collectives(compiled) == moves


def test_split_sums_are_rounded_once():
    """1 + 2^-11 is lost in float16, 4 of it are not."""
    parts = jnp.asarray([[1.0] + [2.0**-11 / 4] * 15], "float16")
    ones = jnp.ones((16, 1), "float16")
    here = mesh()
    split = jax.device_put(parts, NamedSharding(here, P(None, "y")))
    c = jnp.asarray([[2.0**-11 / 4]], "float16")
    d = jax.jit(lambda a, b, c: fj.gemm(a, b, c=c))(split, ones, c)
    assert d[0, 0] == jnp.float16(1 + 16 * 2.0**-13)


def layer(product, x, weight, bias):
    y = product(x, weight, bias).astype("float32")
    return (y**2).sum()


def plain_linear(x, weight, bias):
    return x @ weight.T + bias


@pytest.mark.parametrize(
    ("x_spec", "weight_spec"),
    [
        (P("x", "y"), P()),
        (P("x", None, "y"), P(None, "y")),
        (P("x"), P("y")),
        (P(("x", "y")), P()),
    ],
)
def test_gradients_of_split_arrays(x_spec, weight_spec):
    here = mesh()
    x, weight, bias = integers(8, 4, 16), integers(8, 16, seed=1), integers(8, seed=2)
    split = (
        jax.device_put(x, NamedSharding(here, x_spec)),
        jax.device_put(weight, NamedSharding(here, weight_spec)),
        bias,
    )
    mine = jax.jit(jax.grad(functools.partial(layer, fj.linear), (0, 1, 2)))(*split)
    theirs = jax.grad(functools.partial(layer, plain_linear), (0, 1, 2))(x, weight, bias)
    for g, e in zip(mine, theirs, strict=True):
        exactly(g, e)


@pytest.mark.parametrize("check", [True, False])
def test_shard_map(check):
    """Tensor parallel: k is split over y, tokens over x; the sums cross devices in float32."""
    here = mesh()
    x, weight = integers(8, 16), integers(4, 16, seed=1)

    def local(product, x, weight):
        y = jax.lax.psum(product(x, weight), "y")
        return jax.lax.psum((y**2).sum(), "x")

    def loss(product):
        specs = {"in_specs": (P("x", "y"), P(None, "y")), "out_specs": P()}
        fun = functools.partial(local, product)
        return jax.jit(
            jax.value_and_grad(
                jax.shard_map(fun, mesh=here, check_vma=check, **specs), argnums=(0, 1)
            )
        )

    wide = functools.partial(fj.linear, out_dtype="float32")
    value, gradients = loss(wide)(x, weight)
    expected, theirs = loss(lambda x, w: (x @ w.T).astype("float32"))(x, weight)
    assert value == expected
    for g, e in zip(gradients, theirs, strict=True):
        exactly(g, e)


def test_explicit_axes():
    here = mesh(AxisType.Explicit)
    x, weight = integers(8, 16), integers(4, 16, seed=1)
    with jax.set_mesh(here):
        split = jax.device_put(x, NamedSharding(here, P("x"))), jax.device_put(
            weight, NamedSharding(here, P("y"))
        )
        d = jax.jit(fj.linear)(*split)
        assert d.sharding.spec == P("x", "y")
        gradients = jax.jit(jax.grad(lambda x, w: fj.linear(x, w).sum(), (0, 1)))(*split)
        assert [g.sharding.spec for g in gradients] == [P("x", None), P("y", None)]
        along_k = jax.device_put(x, NamedSharding(here, P(None, "x")))
        summed = jax.jit(lambda x: fj.gemm(x, x, transpose_b=True, out_sharding=P()))(along_k)
    exactly(d, x @ weight.T)
    exactly(summed, x @ x.T)


def test_an_explicit_mesh_of_one_device():
    one = jax.devices("cpu")[:1]
    here = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Explicit,), devices=one)
    x, weight = integers(8, 16), integers(4, 16, seed=1)
    with jax.set_mesh(here):
        split = jax.device_put(x, NamedSharding(here, P("x"))), weight
        exactly(jax.jit(fj.linear)(*split), x @ weight.T)
        gradient = jax.jit(jax.grad(lambda x, w: fj.linear(x, w).sum()))(*split)
    exactly(gradient, jnp.ones((8, 4), "float16") @ weight)


# What XLA calls.


def test_declarations_are_those_of_jaxlib():
    compiler = shutil.which("c++")
    need(compiler, "no C++ compiler")
    folder = Path(jax.ffi.include_dir())
    includes = [f"-I{ROOT / 'python'}", f"-I{folder}"]
    source = ROOT / "tests/cpp/xla_check.cpp"
    command = [compiler, "-std=c++17", "-fsyntax-only", "-Werror", *includes, source]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def lowered_for_gpus(function, *operands):
    return jax.jit(function).trace(*operands).lower(lowering_platforms=("cuda",)).as_text()


def test_a_program_for_gpus_calls_the_handler_without_copies():
    a, weight = integers(4, 8), integers(6, 8, seed=1)
    text = lowered_for_gpus(lambda a, w: fj.linear(a, w, out_dtype="float32"), a, weight)
    assert "stablehlo.custom_call @fastgemm_product" in text
    assert "transpose_b = 1 : i32" in text
    assert "stablehlo.transpose" not in text
    text = lowered_for_gpus(jax.grad(lambda w, a: fj.linear(a, w).sum()), weight, a)
    assert "stablehlo.transpose" not in text
    assert "dot_general" not in text


@on_fake_gpu
def test_xla_calls_the_handler_with_the_product(driver):
    """Through XLA's own runtime: on the CPU, where the handler takes host memory to the GPU."""
    handlers = fastgemm._core._xla_handlers(True)
    jax.ffi.register_ffi_target("product", handlers["execute"], platform="cpu")
    config = fastgemm._core._remember_config(fastgemm.GemmConfig(family="sm80", block_m=64))

    def call(a, b, c, shape, dtype, **attributes):
        numbers = {
            "alpha": np.float32(0.5),
            "beta": np.float32(2.0),
            "transpose_a": np.int32(0),
            "transpose_b": np.int32(0),
            "config": np.int64(config),
            **attributes,
        }
        operands = (a, b) if c is None else (a, b, c)
        return jax.ffi.ffi_call("product", jax.ShapeDtypeStruct(shape, dtype))(*operands, **numbers)

    a, b, c = integers(3, 4, 8), integers(1, 8, 6, seed=1), integers(1, 1, 6, seed=2)
    d = jax.jit(lambda a, b, c: call(a, b, c, (3, 4, 6), "float16"))(a, b, c)
    exactly(d, 0.5 * (a @ b) + 2 * c)
    a, b = integers(8, 4, dtype="bfloat16"), integers(6, 8, dtype="bfloat16", seed=1)
    both = {"transpose_a": np.int32(1), "transpose_b": np.int32(1)}
    d = jax.jit(lambda a, b: call(a, b, None, (4, 6), "float32", **both))(a, b)
    exactly(d, 0.5 * (a.T @ b.T))
    assert driver.launches == 2
    with pytest.raises(Exception, match=r"a of shape \(8, 4\) and b of shape \(6, 8\)"):
        call(a, b, None, (8, 8), "bfloat16")
    with pytest.raises(Exception, match="in another process with a GemmConfig"):
        call(a.T, b.T, None, (4, 6), "bfloat16", config=np.int64(5))


@on_fake_gpu
def test_kernels_are_compiled_when_a_program_is_lowered(driver):
    a, weight = integers(64, 4096), integers(64, 4096, seed=1)

    def lowered(split_k, add=0):
        config = fastgemm.GemmConfig(split_k=split_k)
        return lowered_for_gpus(lambda a, w: fj.linear(a, w, config=config) + add, a, weight)

    assert "@fastgemm_product(" in lowered(1)
    assert fastgemm.cache_info().compiles == 1
    lowered(1, add=1)
    assert fastgemm.cache_info().compiles == 1
    assert "@fastgemm_product_with_workspace(" in lowered(2)
    assert fastgemm.cache_info().compiles == 2
    assert driver.loads == driver.launches == 0

