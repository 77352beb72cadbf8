"""Rows that begin anywhere, read in aligned chunks: exact at every address and stride."""

import fastgemm
import numpy as np
import pytest
from products import LAYOUTS, product

TILES = {
    "sm_80": dict(family="sm80", block_m=32, block_n=32, block_k=32, num_stages=2),
    "sm_90": dict(family="sm90", block_m=64, block_n=64, num_stages=2),
}
BOTH = dict(shift_a=True, shift_b=True, repack_a=False, repack_b=False)
on_each = pytest.mark.parametrize("arch", TILES)


def among_nans(*shape, pitch, offset, seed):
    """A view of rows `pitch` apart; NaNs lie between them, before the first and behind the last."""
    *outer, cols = shape
    rows = int(np.prod(outer))
    store = np.full(offset + rows * pitch + 8, np.nan, np.float16)
    view = store[offset : offset + rows * pitch].reshape(*outer, pitch)[..., :cols]
    view[...] = np.random.default_rng(seed).integers(-3, 4, shape)
    return view


def check(a, b, arch):
    d, _ = fastgemm.emulate(a, b, arch=arch, config=fastgemm.GemmConfig(**BOTH, **TILES[arch]))
    np.testing.assert_array_equal(d, (a.astype(np.float64) @ b.astype(np.float64)).astype(d.dtype))


@on_each
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("which", [("shift_a",), ("shift_b",), ("shift_a", "shift_b")])
def test_every_layout_at_the_edges_of_tiles(layout, which, arch):
    fields = {"arch": arch, **TILES[arch], **dict.fromkeys(("repack_a", "repack_b"), False)}
    fields |= dict.fromkeys(which, True)
    # Of Hopper's two operands, one that is not shifted is the TMA's: aligned.
    gaps = (8,) if arch == "sm_90" and len(which) == 1 else (1, 2, 3, 8)
    for gap in gaps:
        for m, n, k in ((33, 31, 65), (64, 40, 31), (1, 1, 1), (5, 100, 203)):
            product(m, n, k, layout=layout, gap=gap, seed=gap, **fields)
    product(70, 50, 331, layout=layout, gap=gaps[0], split_k=3, beta=2.0, **fields)


@on_each
def test_every_address_and_pitch(arch):
    m, n, k = 40, 36, 41
    b = among_nans(n, k, pitch=k, offset=0, seed=2).T
    for offset in range(9):
        for pitch in (k, 42, 44, 48, 51):
            a = among_nans(m, k, pitch=pitch, offset=offset, seed=1)
            check(a, b, arch)
            check(b.T, a.T, arch)


@on_each
def test_batches_backward_rows_and_broadcasts(arch):
    a = among_nans(3, 33, 37, pitch=39, offset=3, seed=1)
    b = among_nans(3, 37, 35, pitch=35, offset=5, seed=2)
    check(a, b, arch)
    check(a[::-1], b[0], arch)
    check(a[:, ::-1], b[:, ::-1], arch)
    check(np.broadcast_to(a[1], a.shape), b, arch)
    check(np.broadcast_to(a[0, 0], (33, 37)), b[1], arch)
    # Each row begins one element behind the one before.
    check(np.lib.stride_tricks.as_strided(a[0, 0, 1:], (20, 17), (2, 2)), b[0, :17], arch)


@on_each
def test_one_operand_copied_and_the_other_shifted(arch):
    for seed, fields in enumerate(
        (dict(repack_a=True, shift_b=True), dict(shift_a=True, repack_b=True))
    ):
        product(70, 50, 203, gap=1, seed=seed, arch=arch, **TILES[arch], **fields)


HOPPER = {
    "two consumers": dict(block_m=128, block_n=64),
    "a consumer of 128 rows": dict(block_m=128, warp_m=128, block_n=32),
    "24 rows": dict(block_m=24, block_n=16, num_stages=4),
    "deep k-tile": dict(block_m=64, block_n=32, block_k=128),
    "narrow swizzle": dict(block_m=64, block_n=32, swizzle_bytes=64),
    "no swizzle": dict(block_m=64, block_n=32, swizzle=False),
    "K in a cluster": dict(block_m=64, block_n=32, cluster_k=2, split_k=2),
    "direct stores": dict(block_m=64, block_n=48, staged_stores=False),
}


@pytest.mark.parametrize("swap_ab", [False, True])
@pytest.mark.parametrize("name", HOPPER)
def test_tiles_of_hopper(name, swap_ab):
    fields = dict(family="sm90", arch="sm_90", swap_ab=swap_ab, **HOPPER[name])
    k = 331 if fields.keys().isdisjoint(("block_k", "swizzle", "swizzle_bytes")) else 384
    product(70, 150, k, layout="nt", gap=1, repack_a=True, shift_b=True, **fields)


@pytest.mark.parametrize("ping_pong", [False, True])
def test_rings_go_on_from_tile_to_tile(ping_pong):
    fields = dict(block_n=16, persistent=True, swap_ab=True, shift_a=True, shift_b=True)
    for block_m, num_stages in ((8, 2), (16, 3), (64, 5)):
        product(
            16, 300 * block_m, 203, gap=1, arch="sm_90", family="sm90", block_m=block_m,
            num_stages=num_stages, ping_pong=ping_pong, cluster_k=1, repack_a=False,
            repack_b=False, **fields,
        )  # fmt: skip


def test_stores_by_the_tma_beside_straightened_rows():
    # D is aligned, and so are its panels, whatever the rows in front of them take.
    for block_n in (16, 48, 80):
        product(
            70, 64 * 140, 200, gap=8, arch="sm_90", family="sm90", block_m=64, block_n=block_n,
            swap_ab=True, persistent=True, shift_a=True, shift_b=True, tma_stores=True,
        )  # fmt: skip


def test_depth_zero():
    product(40, 24, 0, gap=1, beta=2.0, shift_a=True, shift_b=True, **TILES["sm_80"])


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_what_the_planner_picks(arch):
    for m, n, k, layout in ((16, 519, 1040, "nn"), (16, 263, 520, "nn"), (33, 2000, 333, "nt")):
        picked = fastgemm.plan(m, n, k, layout=layout, arch=arch).config
        assert picked.shift_b
        product(m, n, k, layout=layout, arch=arch, gap=1)
