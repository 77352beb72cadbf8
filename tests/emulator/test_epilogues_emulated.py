"""Fused epilogues on the emulator: every form, in every family, compared with NumPy."""

import fastgemm
import ml_dtypes
import numpy as np
import pytest
from products import DTYPES, operand

FAMILIES = {
    "sm70": dict(arch="sm_70"),
    "sm75": dict(arch="sm_75"),
    "sm80": dict(arch="sm_80"),
    "sm80, split in 2": dict(arch="sm_80", split_k=2),
    "sm80, direct stores": dict(arch="sm_80", staged_stores=False),
    "gemv": dict(arch="sm_80", family="gemv"),
    "sm90": dict(arch="sm_90"),
    "sm90, swapped": dict(arch="sm_90", swap_ab=True, block_n=32),
    "sm90, K shared by 2": dict(arch="sm_90", swap_ab=False, cluster_k=2),
    "sm90, split in 2": dict(arch="sm_90", split_k=2),
}


def emulate(family, m=40, n=64, k=200, *, layout="nt", **options):
    """(exact product, result) of small integers."""
    fields = dict(family if isinstance(family, dict) else FAMILIES_GATED[family])
    arch = fields.pop("arch")
    m = 4 if fields.get("family") == "gemv" else m
    a = operand(m, k, "float16", layout[0] == "t", 1)
    b = operand(k, n, "float16", layout[1] == "t", 2)
    options = {name: x(m, n) if callable(x) else x for name, x in options.items()}
    config = fastgemm.GemmConfig(**fields) if fields else None
    result, _ = fastgemm.emulate(a, b, arch=arch, config=config, **options)
    return a.astype(np.float64) @ b.astype(np.float64), result, options


def values(*shape, dtype="float32", seed=5):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(DTYPES[dtype])


@pytest.mark.parametrize("family", FAMILIES)
def test_scales_bias_residual_and_activation(family):
    exact, result, given = emulate(
        family,
        scale_a=lambda m, n: values(m),
        scale_b=lambda m, n: values(n, seed=6),
        bias=lambda m, n: values(n, dtype="float16", seed=7),
        residual=lambda m, n: values(m, n, dtype="float16", seed=8),
        activation="relu",
        out_dtype="float32",
    )
    want = exact * given["scale_a"][:, None] * given["scale_b"] + given["bias"] + given["residual"]
    assert (result == np.maximum(want, 0)).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_kept_and_the_largest_magnitude(family):
    exact, result, given = emulate(
        family,
        bias=lambda m, n: values(m, 1),
        keep=lambda m, n: np.full((m, n), np.nan, np.float32),
        amax=lambda m, n: np.zeros(1, np.float32),
        activation="relu",
        out_dtype="float32",
    )
    before = exact + given["bias"]
    assert (given["keep"] == before).all()
    assert (result == np.maximum(before, 0)).all()
    assert given["amax"][0] == np.maximum(before, 0).max()


# Accumulators meet arrays in 32 columns at once where panels of D are 32 or 64 wide, in pairs where
# they are 16; at the edge 16 columns exist, or 8 of a row that is no whole sixteens.
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("n", [176, 200])
@pytest.mark.parametrize("tile", [dict(block_n=64), dict(block_n=96), dict(block_n=48),
                                  dict(block_n=64, swap_ab=True)], ids=str)  # fmt: skip
def test_arrays_of_elements_beside_tma_stores(tile, n, dtype):
    fields = {"swap_ab": False, "tma_stores": True, **tile}
    exact, result, given = emulate(
        dict(arch="sm_90", **fields),
        n=n,
        k=40,
        bias=lambda m, n: values(n, dtype=dtype),
        residual=lambda m, n: values(m, n, dtype=dtype, seed=8),
        keep=lambda m, n: np.full((m, n), np.nan, DTYPES[dtype]),
        amax=lambda m, n: np.zeros(1, np.float32),
        activation="relu",
    )
    before = exact + given["bias"] + given["residual"]
    assert (given["keep"] == before).all()
    assert (result == np.maximum(before, 0)).all()
    assert given["amax"][0] == before.max()


def test_an_array_that_begins_anywhere_beside_tma_stores():
    padded = values(40, 180, dtype="float16")
    exact, result, _ = emulate("sm90", n=176, k=40, residual=padded[:, 3:179])
    assert (result == exact + padded[:, 3:179]).all()


# Gates and ups are fetched a column of the swizzle at a time.
FAMILIES_GATED = {
    **FAMILIES,
    "sm90, 64-byte rows": dict(arch="sm_90", swap_ab=False, swizzle_bytes=64, block_k=32),
    "sm90, no swizzle, 2x1": dict(
        arch="sm_90", swap_ab=False, swizzle=False, block_m=64, block_n=64, cluster_m=2
    ),
    "sm90, no swizzle, swapped": dict(arch="sm_90", swap_ab=True, block_n=32, swizzle=False),
    "sm90, swapped, 1x2": dict(
        arch="sm_90", swap_ab=True, block_m=32, block_n=32, block_k=64, cluster_n=2
    ),
}


@pytest.mark.parametrize("gated", ["interleaved", "blocked"])
@pytest.mark.parametrize("family", FAMILIES_GATED)
def test_gated_columns(family, gated):
    exact, result, _ = emulate(family, gated=gated, activation="relu", out_dtype="float32")
    half = exact.shape[1] // 2
    gate, up = (
        (exact[:, ::2], exact[:, 1::2])
        if gated == "interleaved"
        else (exact[:, :half], exact[:, half:])
    )
    assert (result == np.maximum(gate, 0) * up).all()


def test_eight_gates_and_their_ups_are_not_shared_out():
    fields = dict(swap_ab=True, block_m=16, block_n=32, block_k=64, cluster_n=2)
    epilogue = fastgemm.Epilogue("silu(gate) * up", gated="blocked")
    with pytest.raises(ValueError, match="in 16s of its rows: cluster_n 2 needs block_m a multipl"):
        fastgemm.plan(
            40, 64, 200, arch="sm_90", config=fastgemm.GemmConfig(**fields), epilogue=epilogue
        )


@pytest.mark.parametrize("out_dtype", ["int8", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("family", ["sm75", "sm80", "sm90", "gemv"])
def test_results_of_eight_bits(family, out_dtype):
    exact, result, _ = emulate(family, out_dtype=out_dtype, out_scale=4.0)
    if out_dtype == "int8":
        assert (result == np.clip(np.rint(exact / 4), -128, 127)).all()
    else:
        kind = getattr(ml_dtypes, out_dtype)
        most = float(ml_dtypes.finfo(kind).max)
        assert (result.view(kind) == np.clip(exact / 4, -most, most).astype(kind)).all()


@pytest.mark.parametrize("family", ["sm80", "sm90", "sm90, swapped"])
def test_an_expression_of_ones_own(family):
    arrays = dict(x=values(40, 64), y=values(64))
    x = fastgemm.Epilogue("where(acc > x[m, n], acc, y[n] * s)", **arrays, s=2)
    exact, result, _ = emulate(family, epilogue=x, out_dtype="float32")
    assert (result == np.where(exact > values(40, 64), exact, 2 * values(64))).all()
