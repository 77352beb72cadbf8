"""Products of small integers on the emulator: sums are exact, every element has one right value."""

import fastgemm
import ml_dtypes
import numpy as np

LAYOUTS = ("nn", "nt", "tn", "tt")
DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32}
GAP = 8  # elements around every row: operands have NaN there, the result a pattern
FUSED = "amax(relu(keep(acc * scale[m] + bias[n]) + residual[m, n]))"


def framed(rows, cols, dtype, transposed, pattern, gap=GAP):
    """A frame of `pattern`, and the view of a rows x cols matrix inside it."""
    shape = (cols, rows) if transposed else (rows, cols)
    # Rows stay aligned where the gap is: whatever their length, they may be accessed in vectors.
    pitch = shape[1] + 2 * gap + (-shape[1] % 8 if gap % 8 == 0 else 0)
    frame = np.full((shape[0] + 2 * gap, pitch), pattern, DTYPES[dtype])
    inside = frame[gap : gap + shape[0], gap : gap + shape[1]]
    return frame, (inside.T if transposed else inside)


def operand(rows, cols, dtype, transposed, seed, gap=GAP):
    _, view = framed(rows, cols, dtype, transposed, np.nan, gap)
    view[...] = np.random.default_rng(seed).integers(-3, 4, (rows, cols))
    return view


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
    fused=False,
    gap=GAP,
    arch="sm_80",
    seed=0,
    **config,
):
    """Emulates one product, requires every element to be right and nothing else to be touched.

    fused: with an epilogue that reads arrays of all kinds and leaves two.
    """
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
    if fused:
        kept_frame, kept = framed(m, n, "float32", out_transposed, 77, gap)
        arrays = dict(
            scale=operand(m, 1, "float16", False, 4, gap)[:, 0],
            bias=operand(1, n, "float32", False, 5, gap)[0],
            residual=operand(m, n, dtype, out_transposed, 6, gap),
            keep=kept,
            amax=np.zeros(1, np.float32),
        )
        options = {"epilogue": fastgemm.Epilogue(FUSED, **arrays)}
        exact_kept = exact * arrays["scale"][:, None] + arrays["bias"]
        exact = np.maximum(exact_kept + arrays["residual"], 0)
    config = fastgemm.GemmConfig(**config) if config else None
    result, report = fastgemm.emulate(
        a, b, out=out, alpha=alpha, arch=arch, seed=seed, config=config, **options
    )
    assert result is out
    check_frame(frame, out, exact, out_dtype)
    if fused:
        check_frame(kept_frame, kept, exact_kept, "float32")
        assert arrays["amax"] == exact.max(initial=0)
    return report
