"""fastgemm.jax on one device: results, derivatives, vmap, refusals."""

import functools

import fastgemm
import numpy as np
import pytest
from jax_arrays import exactly, fj, integers, jax, jnp, on_the_host  # noqa: F401
from matmul_shapes import SHAPES


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


def test_biases_of_every_shape_and_dtype():
    a, b, v = integers(3, 4, 8), integers(8, 6, seed=1), integers(8, seed=3)
    for shape in ((6,), (1, 6), (3, 1, 6), (4, 1), (1,), ()):
        for dtype in ("float16", "float32"):
            bias = integers(*shape, dtype=dtype, seed=2)
            exactly(fj.gemm(a, b, bias=bias, activation="relu"), jax.nn.relu(a @ b + bias))
    for left, right, shape in ((v, b, (6,)), (a, v, (4,)), (v, v, ())):
        bias = integers(*shape, seed=2)
        exactly(fj.gemm(left, right, bias=bias), left @ right + bias)


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
