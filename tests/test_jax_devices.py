"""fastgemm.jax on several devices: parts of products, their gradients, shard_map, explicit axes."""

import functools

import pytest
from jax_arrays import (  # noqa: F401
    AxisType,
    NamedSharding,
    P,
    exactly,
    fj,
    integers,
    jax,
    jnp,
    on_the_host,
)
from native import need


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
