"""fastgemm in JAX: products inside of jax.jit, vmap, grad (forward and reverse) and shard_map.

On NVIDIA GPUs a product is a custom call whose kernel is compiled when the program is lowered.
Elsewhere it is XLA's own dot with float32 sums, rounded once, so that programs and tests run
without a GPU.
"""

import jax.numpy as jnp

from . import _jax_lowering  # noqa: F401  tells JAX how to lower the primitive
from ._frameworks import dtype_name
from ._jax_primitive import ACTIVATIONS, bind, with_epilogue

__all__ = ["gemm", "linear"]

_LOW = ("float16", "bfloat16")


def gemm(
    a,
    b,
    *,
    c=None,
    alpha=1.0,
    beta=None,
    bias=None,
    activation=None,
    out_dtype=None,
    transpose_a=False,
    transpose_b=False,
    out_sharding=None,
    config=None,
):
    """activation(alpha * a @ b + beta * c) or, in place of c, a bias of shape (n,).

    Shapes, dtypes and config are those of fastgemm.gemm(). transpose_a and transpose_b say that
    the last two dimensions are stored the other way round: inside of jit, `b.T` would be a copy.
    Bias and activation are part of the kernel; where the product is differentiated, the activation
    is XLA's, after the sum was rounded. With arrays that are split over devices, each computes its
    part; where k is split, float32 sums are added before they are rounded. With a mesh of explicit
    axes, out_sharding is as for jnp.matmul.
    """
    a, b = jnp.asarray(a), jnp.asarray(b)
    if bias is not None and c is not None:
        raise ValueError("bias and c are both given; pass one")
    if beta is not None and c is None:
        raise ValueError("beta is given without c; pass the array that it multiplies as c=")
    if activation is not None and activation not in ACTIVATIONS:
        raise ValueError(
            f"unknown activation {activation!r}; known are {', '.join(ACTIVATIONS)}"
        )
    addend = c if bias is None else bias
    addend = None if addend is None else jnp.asarray(addend)
    out_dtype = _checked_dtypes(a, b, None if c is None else addend, out_dtype)
    shape = _result_shape(a, b, transpose_a, transpose_b)

    left = a[None, :] if a.ndim == 1 else a
    right = b[:, None] if b.ndim == 1 else b
    rank = max(left.ndim, right.ndim)
    static = {
        "alpha": float(alpha),
        "beta": 1.0 if beta is None else float(beta),
        "bias": bias is not None,
        "activation": activation,
        "transpose_a": bool(transpose_a) and a.ndim > 1,
        "transpose_b": bool(transpose_b) and b.ndim > 1,
        "out_dtype": out_dtype,
        "out_sharding": out_sharding,
        "config": config,
    }
    operands = [left, right]
    if addend is not None:
        addend = _as_matrices(addend, a, b, shape)
        columns = right.shape[-2 if static["transpose_b"] else -1]
        if static["bias"] and addend.shape[-2:] != (1, columns):
            static["bias"], addend = False, addend.astype(out_dtype)
        operands.append(addend)
    operands = [_of_rank(x, rank) for x in operands]
    fused = addend is not None or activation is not None
    d = with_epilogue(static, *operands) if fused else bind(*operands, **static)
    return d.reshape(shape)


def linear(x, weight, bias=None, *, activation=None, out_dtype=None, config=None):
    """A linear layer: activation(x @ weight.T + bias), with weight (out_features, in_features)."""
    if jnp.ndim(weight) != 2:
        raise ValueError(
            f"weight has shape {jnp.shape(weight)}; expected a matrix (out_features, in_features)"
        )
    return gemm(
        x,
        weight,
        bias=bias,
        activation=activation,
        out_dtype=out_dtype,
        transpose_b=True,
        config=config,
    )


def _checked_dtypes(a, b, c, out_dtype):
    out_dtype = jnp.dtype(a.dtype if out_dtype is None else dtype_name(out_dtype))
    fits = a.dtype == b.dtype and a.dtype in _LOW and out_dtype in (a.dtype, jnp.float32)
    if not fits or (c is not None and c.dtype != out_dtype):
        got = f"a {a.dtype}, b {b.dtype}" + (f", c {c.dtype}" if c is not None else "")
        raise TypeError(
            f"unsupported dtypes: {got}, result {out_dtype}; supported are a and b of float16 or "
            "bfloat16, both the same, with c and the result of that dtype or float32"
        )
    return out_dtype


def _result_shape(a, b, transpose_a, transpose_b):
    def stored(x, transposed):
        return (*x.shape[:-2], x.shape[-1], x.shape[-2]) if transposed and x.ndim > 1 else x.shape

    left, right = stored(a, transpose_a), stored(b, transpose_b)
    try:
        batch = jnp.broadcast_shapes(left[:-2], right[:-2])
    except ValueError:
        batch = None
    if batch is None or not left or not right or left[-1] != right[max(len(right) - 2, 0)]:
        raise ValueError(
            f"matrix product of a of shape {left} and b of shape {right}: the last dimension of a "
            "must be the last but one (or only one) of b, and the others must broadcast"
        )
    return (*batch, *left[-2:-1], *(right[-1:] if len(right) > 1 else ()))


def _of_rank(x, rank):
    return x.reshape((1,) * (rank - x.ndim) + x.shape)


def _as_matrices(c, a, b, shape):
    """c with the dimensions that a vector a or b lacks in the result."""
    try:
        fits = jnp.broadcast_shapes(c.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"c (or the bias) has shape {c.shape}, which does not broadcast to {shape}, the shape "
            "of the product"
        )
    if b.ndim == 1:
        c = c[..., None]
    if a.ndim == 1 and c.ndim > 1:
        c = jnp.expand_dims(c, -2)
    return _of_rank(c, max(c.ndim, 2))

