"""Products of small integers on the emulator: sums are exact, every element has one right value."""

import fastgemm
import ml_dtypes
import numpy as np

LAYOUTS = ("nn", "nt", "tn", "tt")
DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}
GAP = 8  # elements around every row: operands have NaN there, the result a pattern


def framed(rows, cols, dtype, transposed, pattern, gap=GAP):
    """A frame of `pattern`, and the view of a rows x cols matrix inside it."""
    shape = (cols, rows) if transposed else (rows, cols)
    frame = np.full([extent + 2 * gap for extent in shape], pattern, DTYPES[dtype])
    inside = frame[gap : gap + shape[0], gap : gap + shape[1]]
    return frame, (inside.T if transposed else inside)


def operand(rows, cols, dtype, transposed, seed, gap=GAP):
    _, view = framed(rows, cols, dtype, transposed, np.nan, gap)
    view[...] = np.random.default_rng(seed).integers(-3, 4, (rows, cols))
    return view


FUSED = "amax(relu(keep(acc * scale[m] + bias[n]) + residual[m, n]))"
GATED = "relu(gate * scale[m]) * (up + bias[up])"


def vector(extent, dtype, seed, gap):
    return operand(extent, 1, dtype, False, seed, gap)[:, 0]


def check_frame(frame, view, exact, dtype):
    """Every element of the view is right, and nothing beside it was touched."""
    np.testing.assert_array_equal(view.astype(np.float64), exact.astype(DTYPES[dtype]))
    view[...] = 77
    assert (frame == 77).all(), "something beside the result was written"


def product(
    m,
    n,
    k,
    *,
    layout="nt",
    dtype="float16",
    out_dtype=None,
    out_transposed=False,
    alpha=1.0,
    beta=0.0,
    fused=None,
    gap=GAP,
    arch="sm_80",
    seed=0,
    **config,
):
    """Emulates one product, requires every element to be right and nothing else to be touched.

    fused: "all" for an epilogue with all kinds of arrays, or how it is gated; n is the product's.
    """
    out_dtype = out_dtype or dtype
    gated = fused in ("interleaved", "blocked")
    cols = n // 2 if gated else n
    a = operand(m, k, dtype, layout[0] == "t", 1, gap)
    b = operand(k, n, dtype, layout[1] == "t", 2, gap)
    frame, out = framed(m, cols, out_dtype, out_transposed, 77, gap)
    out[...] = np.nan
    exact = alpha * (a.astype(np.float64) @ b.astype(np.float64))
    options = {}
    if beta:
        options = {"c": operand(m, n, out_dtype, out_transposed, 3, gap), "beta": beta}
        exact += beta * options["c"].astype(np.float64)
    if fused:
        scale, bias = vector(m, "float16", 4, gap), vector(n, "float32", 5, gap)
    if gated:
        options = {"epilogue": fastgemm.Epilogue(GATED, scale=scale, bias=bias, gated=fused)}
        gate, up = np.s_[:, ::2], np.s_[:, 1::2]
        if fused == "blocked":
            gate, up = np.s_[:, :cols], np.s_[:, cols:]
        exact = np.maximum(exact[gate] * scale[:, None], 0) * (exact + bias)[up]
    elif fused:
        residual = operand(m, n, dtype, out_transposed, 6, gap)
        kept_frame, kept = framed(m, n, "float32", out_transposed, 77, gap)
        amax = np.zeros(1, np.float32)
        arrays = dict(scale=scale, bias=bias, residual=residual, keep=kept, amax=amax)
        options = {"epilogue": fastgemm.Epilogue(FUSED, **arrays)}
        exact_kept = exact * scale[:, None] + bias
        exact = np.maximum(exact_kept + residual, 0)
    config = fastgemm.GemmConfig(**config) if config else None
    result, report = fastgemm.emulate(
        a, b, out=out, alpha=alpha, arch=arch, seed=seed, config=config, **options
    )
    assert result is out
    check_frame(frame, out, exact, out_dtype)
    if fused == "all":
        check_frame(kept_frame, kept, exact_kept, "float32")
        assert amax[0] == exact.max(initial=0)
    return report
