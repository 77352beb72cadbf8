"""The product as a JAX primitive: its type, derivatives and vmap.

Operands have the same rank: (batch..., m, k), (batch..., k, n) and, if there is one, a C or a bias
that broadcasts to (batch..., m, n). A batch dimension of 1 is broadcast. With `summed`, products
are added over the batch: the result has 1 there.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Primitive
from jax.interpreters import ad, batching
from jax.sharding import AxisType, NamedSharding, PartitionSpec

product_p = Primitive("fastgemm_product")  # of whole arrays
local_p = Primitive("fastgemm_local_product")  # of the part that one device has


def bind(a, b, *c, summed=False, out_sharding=None, **static):
    operands = _same_variance(a, b, *c)
    return product_p.bind(*operands, summed=summed, out_sharding=out_sharding, **static)


def _same_variance(*arrays):
    """Inside of shard_map: all marked as varying over the mesh axes that any varies over."""
    axes = [_varying_axes(jax.typeof(x)) for x in arrays]
    every = frozenset().union(*axes)
    return [
        _vary(x, tuple(every - own)) if every - own else x
        for x, own in zip(arrays, axes, strict=True)
    ]


def _varying_axes(aval):
    if hasattr(aval, "manual_axis_type"):
        return frozenset(aval.manual_axis_type.varying)
    return getattr(aval, "vma", frozenset())


def _vary(x, axes):
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(x, axes, to="varying")
    return jax.lax.pvary(x, axes)


# What it computes, with XLA's own operations.

ACTIVATIONS = {
    "relu": jax.nn.relu,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "gelu_tanh": lambda x: jax.nn.gelu(x, approximate=True),
    "silu": jax.nn.silu,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
}


def reference(a, b, *c, alpha, transpose_a, transpose_b, out_sharding, summed, config, **epilogue):
    a = a.mT if transpose_a else a
    b = b.mT if transpose_b else b
    how = {"preferred_element_type": jnp.float32}
    if summed:
        if out_sharding is not None:
            spec = PartitionSpec(*out_sharding.spec[-2:])
            how["out_sharding"] = NamedSharding(out_sharding.mesh, spec)
        d = jnp.einsum("...mk,...kn->mn", a, b, **how)[(None,) * (a.ndim - 2)]
    else:
        if out_sharding is not None:
            how["out_sharding"] = out_sharding
        d = jnp.matmul(a, b, **how)
    return finish(alpha * d, *c, **epilogue)


def finish(d, *c, beta, bias, activation, out_dtype, **_):
    """What is done with float32 sums."""
    if c:
        d = d + (1.0 if bias else beta) * c[0].astype(jnp.float32)
    if activation is not None:
        d = ACTIVATIONS[activation](d)
    return d.astype(out_dtype)


def _abstract(*avals, **static):
    return jax.make_jaxpr(functools.partial(reference, **static))(*avals).out_avals[0]


product_p.def_abstract_eval(_abstract)
local_p.def_abstract_eval(_abstract)


@functools.cache
def _compiled(primitive, static):
    return jax.jit(functools.partial(primitive.bind, **dict(static)))


product_p.def_impl(lambda *x, **static: _compiled(product_p, tuple(static.items()))(*x))


# Derivatives. The operand whose batch was broadcast gets the sum over it.


def _cotangent(x, y, operand, *, summed, out_sharding, **static):
    """x @ y, as an operand takes it: of its type, and summed over what was broadcast."""
    shape = operand.aval.shape
    static["out_sharding"] = _explicit_sharding(operand.aval)
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    if shape[:-2] == batch:
        return bind(x, y, **static)
    if all(extent == 1 for extent in shape[:-2]):
        return bind(x, y, summed=True, **static)
    wide = bind(x, y, **{**static, "out_dtype": jnp.dtype("float32"), "out_sharding": None})
    axes = tuple(i for i, extent in enumerate(batch) if shape[i] != extent)
    return wide.sum(axes, keepdims=True).astype(static["out_dtype"])


def _explicit_sharding(aval):
    """The sharding that is part of the type, with a mesh of explicit axes."""
    sharding = getattr(aval, "sharding", None)
    explicit = sharding is not None and AxisType.Explicit in sharding.mesh.axis_types
    return sharding if explicit else None


def _to_a(d, a, b, *, transpose_a, transpose_b, out_dtype, **static):
    static["out_dtype"] = b.dtype
    d = d.astype(b.dtype)
    if transpose_a:
        return _cotangent(b, d, a, transpose_a=transpose_b, transpose_b=True, **static)
    return _cotangent(d, b, a, transpose_a=False, transpose_b=not transpose_b, **static)


def _to_b(d, a, b, *, transpose_a, transpose_b, out_dtype, **static):
    static["out_dtype"] = a.dtype
    d = d.astype(a.dtype)
    if transpose_b:
        return _cotangent(d, a, b, transpose_a=True, transpose_b=transpose_a, **static)
    return _cotangent(a, d, b, transpose_a=not transpose_a, transpose_b=False, **static)


ad.defbilinear(product_p, _to_a, _to_b)


def with_epilogue(static, *operands):
    """D = activation(alpha A B + beta C): C is differentiated as what it is added to, and the
    activation as one of XLA's, of the rounded sum."""
    no_epilogue = {**static, "bias": False, "activation": None}

    @jax.custom_jvp
    def product(*operands):
        return bind(*operands, **static)

    def product_jvp(primals, tangents):
        a, b, *c = primals
        d = bind(a, b, *c, **{**static, "activation": None})
        da, db, *dc = (None if isinstance(t, SymbolicZero) else t for t in tangents)
        parts = [] if da is None else [bind(da, b, **no_epilogue)]
        parts += [] if db is None else [bind(a, db, **no_epilogue)]
        if dc and dc[0] is not None:
            scale = 1.0 if static["bias"] else static["beta"]
            parts.append((scale * dc[0].astype(jnp.float32)).astype(d.dtype))
        tangent = jnp.broadcast_to(sum(parts), d.shape) if parts else jnp.zeros_like(d)
        if static["activation"] is None:
            return d, tangent
        return jax.jvp(ACTIVATIONS[static["activation"]], (d,), (tangent,))

    product.defjvp(product_jvp, symbolic_zeros=True)
    return product(*operands)


# vmap: the mapped dimension becomes the first batch dimension.


def _batch(arrays, dims, **static):
    static["out_sharding"] = None
    moved = [
        jnp.expand_dims(x, 0) if dim is None else jnp.moveaxis(x, dim, 0)
        for x, dim in zip(arrays, dims, strict=True)
    ]
    if not static["summed"]:
        return bind(*moved, **static), 0
    changed = {"summed": False, "out_dtype": jnp.dtype("float32")}
    wide = bind(*moved, **{**static, **changed})
    summed = wide.sum(range(1, wide.ndim - 2), keepdims=True)
    return summed.astype(static["out_dtype"]), 0


batching.primitive_batchers[product_p] = _batch
