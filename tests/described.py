"""Runs on the CPU, through the very pointers and strides, what gemm() would hand to the library."""

import ml_dtypes
import numpy as np
from fastgemm import _core

DTYPES = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
}


class Memory:
    def __init__(self, view, shape):
        bits = 8 * DTYPES[view["dtype"]].itemsize
        strides = tuple(s * bits // 8 for s in view["strides"])
        self.__array_interface__ = {
            "version": 3,
            "data": (view["data"], False),
            "shape": shape,
            "strides": strides,
            "typestr": f"<u{bits // 8}",
        }


def matrix(view, shape):
    """The memory of an operand as a NumPy array of shape (batch, rows, cols)."""
    return np.asarray(Memory(view, shape)).view(DTYPES[view["dtype"]])


def run(a, b, *, out, **arguments):
    """gemm(a, b, out=out, ...) for host arrays, in float64, from the described problems alone."""
    call = _core._describe_call(a, b, out=out, **arguments)
    assert call["device"] == "host"
    for p in call["problems"]:
        batch, m, n, k = p["batch_m_n_k"]
        left = matrix(p["a"], (batch, m, k)).astype(np.float64)
        right = matrix(p["b"], (batch, k, n)).astype(np.float64)
        product = p["alpha"] * (left @ right)
        if p["beta"]:
            product += p["beta"] * matrix(p["c"], (batch, m, n)).astype(np.float64)
        d = matrix(p["d"], (batch, m, n))
        d[...] = product.astype(d.dtype)
    return call


def integers(shape, dtype=np.float16, seed=0):
    """Small integers, whose products and sums are exact in every dtype."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)
