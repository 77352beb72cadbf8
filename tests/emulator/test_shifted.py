"""Rows that begin anywhere, read in aligned chunks: exact at every address and stride."""

import fastgemm
import numpy as np
import pytest
from products import LAYOUTS, product

TILE = dict(family="sm80", block_m=32, block_n=32, block_k=32, num_stages=2)
BOTH = fastgemm.GemmConfig(shift_a=True, shift_b=True, repack_a=False, repack_b=False, **TILE)


def among_nans(*shape, pitch, offset, seed):
    """A view of rows `pitch` apart; NaNs lie between them, before the first and behind the last."""
    *outer, cols = shape
    rows = int(np.prod(outer))
    store = np.full(offset + rows * pitch + 8, np.nan, np.float16)
    view = store[offset : offset + rows * pitch].reshape(*outer, pitch)[..., :cols]
    view[...] = np.random.default_rng(seed).integers(-3, 4, shape)
    return view


def check(a, b, config=BOTH):
    d, _ = fastgemm.emulate(a, b, arch="sm_80", config=config)
    np.testing.assert_array_equal(d, (a.astype(np.float64) @ b.astype(np.float64)).astype(d.dtype))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("which", [("shift_a",), ("shift_b",), ("shift_a", "shift_b")])
def test_every_layout_at_the_edges_of_tiles(layout, which):
    fields = {**TILE, **dict.fromkeys(which, True)}
    for gap in (1, 2, 3, 8):
        for m, n, k in ((33, 31, 65), (64, 40, 31), (1, 1, 1), (5, 100, 203)):
            product(m, n, k, layout=layout, gap=gap, seed=gap, **fields)
    product(70, 50, 331, layout=layout, gap=1, split_k=3, beta=2.0, **fields)


def test_every_address_and_pitch():
    m, n, k = 40, 36, 41
    b = among_nans(n, k, pitch=k, offset=0, seed=2).T
    for offset in range(9):
        for pitch in (k, 42, 44, 48, 51):
            a = among_nans(m, k, pitch=pitch, offset=offset, seed=1)
            check(a, b)
            check(b.T, a.T)


def test_batches_backward_rows_and_broadcasts():
    a = among_nans(3, 33, 37, pitch=39, offset=3, seed=1)
    b = among_nans(3, 37, 35, pitch=35, offset=5, seed=2)
    check(a, b)
    check(a[::-1], b[0])
    check(a[:, ::-1], b[:, ::-1])
    check(np.broadcast_to(a[1], a.shape), b)
    check(np.broadcast_to(a[0, 0], (33, 37)), b[1])
    # Each row begins one element behind the one before.
    check(np.lib.stride_tricks.as_strided(a[0, 0, 1:], (20, 17), (2, 2)), b[0, :17])


def test_one_operand_copied_and_the_other_shifted():
    for seed, fields in enumerate(
        (dict(repack_a=True, shift_b=True), dict(shift_a=True, repack_b=True))
    ):
        product(70, 50, 203, gap=1, seed=seed, **TILE, **fields)


def test_depth_zero():
    product(40, 24, 0, gap=1, beta=2.0, shift_a=True, shift_b=True, **TILE)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_what_the_planner_picks(arch):
    for m, n, k, layout in ((16, 519, 1040, "nn"), (16, 263, 520, "nn"), (33, 200, 333, "nt")):
        picked = fastgemm.plan(m, n, k, layout=layout, arch=arch).config
        assert picked.shift_b and picked.family == "sm80"
        product(m, n, k, layout=layout, arch=arch, gap=1)
