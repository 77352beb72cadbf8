"""Every family, layout, dtype and knob on the emulator, at the edges of its tiles."""

import fastgemm
import pytest
from knobs import KNOBS_OLDER, KNOBS_SM80, SM80, SWIZZLES_SM90, swizzle_case
from products import LAYOUTS, product

SM90 = dict(block_m=128, block_n=128, num_stages=3, cluster_m=1, cluster_n=1, cluster_k=1)
KNOBS_SM90 = {
    "default": {},
    "one stage": dict(num_stages=1),
    "two stages": dict(num_stages=2),
    "cluster 2x1": dict(cluster_m=2),
    "cluster 1x2": dict(cluster_n=2),
    "cluster without multicast": dict(cluster_m=2, multicast=False),
    "ordinary stores": dict(tma_stores=False),
    "direct stores": dict(staged_stores=False),
    "no dependent launch": dict(dependent_launch=False),
    "raster off": dict(raster_group=0),
    "one consumer": dict(block_m=64, num_stages=5),
    "three consumers": dict(block_m=192),
    "tall consumers": dict(block_m=256, warp_m=128),
    "one tall consumer": dict(block_m=128, warp_m=128, block_n=64),
    "wide 2x1": dict(block_n=256, cluster_m=2),
    "208": dict(block_n=208),
    "160 1x2": dict(block_n=160, cluster_n=2),
    "16": dict(block_n=16),
    "128 deep, 2x1": dict(block_k=128, block_n=64, cluster_m=2),
    "256 deep": dict(block_k=256, block_m=64, block_n=32, num_stages=2),
    "split in 3": dict(split_k=3),
    "split in 2, 2x1": dict(split_k=2, cluster_m=2),
    "K shared by 2": dict(cluster_k=2),
    "K shared by 4, ordinary stores": dict(cluster_k=4, block_n=64, tma_stores=False),
    "one tile a CTA": dict(persistent=False),
    "persistent": dict(persistent=True),
    "persistent, ordinary stores, K shared by 2": dict(
        persistent=True, tma_stores=False, cluster_k=2, block_n=64
    ),
    "ping-pong": dict(ping_pong=True),
    "ping-pong 64x256, 2x1": dict(ping_pong=True, block_m=64, block_n=256, cluster_m=2),
    "ping-pong 128x192, 1x2": dict(ping_pong=True, block_n=192, cluster_n=2),
    "ping-pong, ordinary stores, split in 3": dict(ping_pong=True, tma_stores=False, split_k=3),
    "ping-pong, swapped": dict(ping_pong=True, swap_ab=True, block_m=64, block_n=48),
    "prefetch": dict(prefetch=True),
    "swapped": dict(swap_ab=True),
    "swapped, split in 5": dict(swap_ab=True, split_k=5, block_n=16),
    "swapped, 256 deep": dict(swap_ab=True, block_k=256, block_m=64, block_n=16),
    "swapped, 48 wide, 2x1": dict(swap_ab=True, block_n=48, cluster_m=2),
    "swapped, ordinary stores": dict(swap_ab=True, tma_stores=False),
    "56 rows": dict(block_m=112, warp_m=56),
    "48 rows, K shared by 4": dict(block_m=48, block_n=64, cluster_k=4),
    "swapped, 8 rows": dict(swap_ab=True, block_m=8, block_n=32),
    "swapped, 16 rows": dict(swap_ab=True, block_m=16, block_n=32),
    "swapped, twice 32 rows, K shared by 2": dict(
        swap_ab=True, block_m=64, warp_m=32, block_n=16, cluster_k=2
    ),
}


def layouts_of(knobs):
    """Each knob with two of the four layouts, in turns: every kernel is compiled anew."""
    pairs = (("nt", "tn"), ("nn", "tt"))
    return [(layout, knob) for i, knob in enumerate(knobs) for layout in pairs[i % 2]]


def sizes_around(block_m, block_n, block_k, stages):
    yield block_m + 8, block_n - 8, (stages + 1) * block_k + 8
    yield block_m - 1, block_n + 1, block_k - 1
    yield 1, 1, 1


@pytest.mark.parametrize("layout, knob", layouts_of(KNOBS_SM80))
def test_every_knob_of_sm80(layout, knob):
    fields = {**SM80, **KNOBS_SM80[knob]}
    sizes = sizes_around(*(fields[f] for f in ("block_m", "block_n", "block_k", "num_stages")))
    for seed, (m, n, k) in enumerate(sizes):
        product(m, n, k, layout=layout, dtype="bfloat16", seed=seed, **fields)


@pytest.mark.parametrize("layout, knob", layouts_of(KNOBS_OLDER))
@pytest.mark.parametrize("arch", ["sm_75", "sm_70"])
def test_the_families_of_older_gpus(arch, layout, knob):
    for seed, (m, n, k) in enumerate(sizes_around(64, 64, 32, 2)):
        fields = dict(block_m=64, block_n=64, **KNOBS_OLDER[knob])
        product(m, n, k, layout=layout, arch=arch, seed=seed, **fields)


@pytest.mark.parametrize("layout, knob", layouts_of(KNOBS_SM90))
def test_every_knob_of_sm90(layout, knob):
    fields = {**SM90, **KNOBS_SM90[knob]}
    if fields["block_n"] % 64 or fields["block_m"] % 64:  # MN-major: whole boxes of 64
        layout = "nt"
    depth = fields.get("block_k", 64)
    step = 8 if depth == 64 else 64  # deeper k-tiles take whole 64s
    k = (fields["num_stages"] + 1) * depth + step
    m, n = fields["block_m"] + 8, fields["block_n"] - 8
    options = dict(layout=layout, dtype="bfloat16", arch="sm_90", family="sm90", **fields)
    product(m, n, k, seed=1, **options)
    product(3 * m, 3 * n, k, seed=2, **options)
    product(8, 8, depth * fields["cluster_k"], seed=3, **options)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SWIZZLES_SM90)
def test_every_swizzle_of_sm90(name, layout):
    layout, fields, step = swizzle_case(layout, name, SM90)
    depth = fields.get("block_k", 64)
    m, n = fields["block_m"] + 8, fields["block_n"] - 8
    options = dict(layout=layout, dtype="bfloat16", arch="sm_90", family="sm90", **fields)
    product(m, n, (fields["num_stages"] + 1) * depth + step, seed=1, **options)
    product(8, 8, depth * fields["cluster_k"], seed=2, **options)


def test_partial_sums_in_rows_of_odd_length():
    for m, staged in ((17, None), (17, True), (16, False)):
        fields = dict(swap_ab=True, split_k=2, staged_stores=staged)
        product(m, 136, 200, arch="sm_90", family="sm90", **fields)


@pytest.mark.parametrize("k_tiles", [1, 2, 3, 5])
def test_ping_pong_over_several_tiles_a_cta(k_tiles):
    # 300 tiles for 132 SMs, so small that a warpgroup skips part of a lap of the ring, one, more.
    fields = dict(family="sm90", ping_pong=True, swap_ab=False, block_m=8, block_n=16, block_k=64)
    fields |= dict(num_stages=2, cluster_m=1, cluster_k=1)
    m, n, k = 8 * 15, 16 * 20, 64 * k_tiles
    config = fastgemm.GemmConfig(**fields)
    assert fastgemm.plan(m, n, k, arch="sm_90", config=config).ctas == 132
    product(m, n, k, dtype="bfloat16", arch="sm_90", seed=k_tiles, **fields)


@pytest.mark.parametrize("arch", ["sm_70", "sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_the_planner_picks(arch, layout):
    dtypes = ["float16"] if arch in ("sm_70", "sm_75") else ["float16", "bfloat16"]
    for dtype in dtypes:
        for m, n, k in ((8, 64, 1024), (200, 136, 72), (33, 17, 40)):
            product(m, n, k, layout=layout, dtype=dtype, arch=arch)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("out_transposed", [False, True])
def test_results_of_every_dtype_order_and_alignment(arch, out_transposed):
    for out_dtype in ("float16", "float32"):
        for beta in (0.0, -2.0):
            for gap in (8, 1):
                options = dict(out_dtype=out_dtype, out_transposed=out_transposed, gap=gap)
                product(70, 40, 64, arch=arch, beta=beta, alpha=2.0, **options)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_few_rows_without_tensor_cores(arch, layout):
    for gap in (8, 1):
        most = 8 if gap == 1 or layout[1] == "t" else 4  # registers of wide reads across k
        for m, n, k in ((1, 100, 600), (4, 72, 1608), (most, 33, 70)):
            product(m, n, k, layout=layout, arch=arch, gap=gap, family="gemv")


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_that_are_copied_first(arch, layout):
    for gap in (1, 3):
        product(70, 50, 201, layout=layout, arch=arch, gap=gap, repack_a=True, repack_b=True)
    product(70, 50, 201, layout=layout, arch=arch, gap=1, repack_a=True, split_k=2)


FUSED = {
    "sm80": ("sm_80", dict(block_m=64, block_n=64)),
    "sm80, split in 3": ("sm_80", dict(block_m=64, block_n=64, block_k=32, split_k=3)),
    "gemv": ("sm_80", dict(family="gemv")),
    "sm90": ("sm_90", SM90),
    "sm90, 2x1": ("sm_90", dict(SM90, cluster_m=2)),
    "sm90, 56 rows": ("sm_90", dict(SM90, block_m=112, warp_m=56)),
    "sm90, 48 rows": ("sm_90", dict(SM90, block_m=48, block_n=64)),
    "sm90, swapped, 8 rows": ("sm_90", dict(SM90, swap_ab=True, block_m=8, block_n=32)),
}


@pytest.mark.parametrize("name", FUSED)
def test_an_epilogue_with_arrays_of_every_kind_at_the_edges(name):
    arch, config = FUSED[name]
    m = 2 if name == "gemv" else 130
    copies = {}
    if arch == "sm_90":
        config = dict(config, family="sm90")
        copies = dict(repack_a=True, repack_b=True)
    product(m, 85, 192, arch=arch, fused=True, alpha=0.5, **config)
    options = {**config, **copies, "gap": 1, "out_transposed": True, "seed": 1}
    product(m, 85, 192, arch=arch, fused=True, **options)


@pytest.mark.parametrize("gap", [1, 2, 4, 8])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_operands_at_every_alignment(gap, layout):
    product(70, 50, 81, layout=layout, gap=gap)


@pytest.mark.parametrize("config", [{}, dict(split_k=3), dict(arch="sm_90", family="sm90")])
def test_the_order_of_threads_does_not_matter(config):
    reports = [product(136, 72, 328, seed=seed, **config) for seed in range(6)]
    assert len({r.ctas for r in reports}) == 1
    counts = [[(i.name, i.executed, i.bank_conflicts) for i in r.instructions] for r in reports]
    assert all(c == counts[0] for c in counts)


def test_depth_zero_gives_beta_c():
    product(40, 24, 0, beta=2.0)
    product(40, 24, 0)
