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
    gap=GAP,
    arch="sm_80",
    seed=0,
    **config,
):
    """Emulates one product, requires every element to be right and nothing else to be touched."""
    out_dtype = out_dtype or dtype
    a = operand(m, k, dtype, layout[0] == "t", 1, gap)
    b = operand(k, n, dtype, layout[1] == "t", 2, gap)
    frame, out = framed(m, n, out_dtype, out_transposed, 77, gap)
    out[...] = np.nan
    exact = alpha * (a.astype(np.float64) @ b.astype(np.float64))
    options = {}
    if beta:
        options = {"c": operand(m, n, out_dtype, out_transposed, 3, gap), "beta": beta}
        exact += beta * options["c"].astype(np.float64)
    config = fastgemm.GemmConfig(**config) if config else None
    result, report = fastgemm.emulate(
        a, b, out=out, alpha=alpha, arch=arch, seed=seed, config=config, **options
    )
    assert result is out
    np.testing.assert_array_equal(out.astype(np.float64), exact.astype(DTYPES[out_dtype]))
    out[...] = 77
    assert (frame == 77).all(), "something beside the result was written"
    return report
