"""Every kernel family, layout, dtype and knob on a real GPU: exact products at awkward sizes."""

import random

import pytest

torch = pytest.importorskip("torch")
import fastgemm  # noqa: E402
from exact import LAYOUTS, Guarded, check_product, expected, integers, operands  # noqa: E402
from fastgemm import GemmConfig  # noqa: E402
from knobs import (  # noqa: E402
    KNOBS_OLDER,
    KNOBS_SM80,
    SM80,
    SWIZZLES_SM90,
    swizzle_case,
)
from threads import in_threads  # noqa: E402

pytestmark = pytest.mark.gpu
HALF, BF16, FLOAT = torch.float16, torch.bfloat16, torch.float32


def on_hopper():
    return torch.cuda.get_device_capability() == (9, 0)


@pytest.mark.parametrize("dtype", [HALF, BF16])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sizes_sampled_densely(layout, dtype):
    pick = random.Random(f"{layout}{dtype}")
    for i in range(30):
        m, n, k = (pick.randint(0, 300) for _ in range(3))
        check_product(m, n, k, layout, dtype, seed=i)
    for i in range(20):  # 16-byte aligned rows, so that the wide copies and the TMA are used
        m, n, k = (8 * pick.randint(1, 60) for _ in range(3))
        check_product(m, n, k, layout, dtype, seed=i)


def sizes_around(block_m, block_n, block_k, stages):
    for k_tiles, extra in ((1, -8), (1, 0), (stages, -8), (stages, 8), (stages + 1, 0)):
        yield block_m + 8, 2 * block_n - 8, k_tiles * block_k + extra
    yield 3 * block_m + 1, block_n - 1, 3 * block_k + 3
    yield 1, 1, 1


def layouts_of(knobs):
    """Each knob with two of the four layouts, in turns: every kernel is compiled anew."""
    pairs = (("nt", "tn"), ("nn", "tt"))
    return [(layout, knob) for i, knob in enumerate(knobs) for layout in pairs[i % 2]]


@pytest.mark.parametrize("layout, knob", layouts_of(KNOBS_SM80))
def test_every_knob_of_sm80(layout, knob):
    fields = {"family": "sm80", **SM80, **KNOBS_SM80[knob]}
    sizes = sizes_around(*(fields[f] for f in ("block_m", "block_n", "block_k", "num_stages")))
    for m, n, k in sizes:
        check_product(m, n, k, layout, BF16, GemmConfig(**fields))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_largest_tile_of_sm80(layout):
    config = GemmConfig(family="sm80", block_m=256, block_n=128, block_k=64, num_stages=4)
    if layout == "tn":  # both operands are transposed on the way: too many registers
        with pytest.raises(ValueError, match="registers"):
            check_product(264, 248, 56, layout, BF16, config)
        return
    for m, n, k in sizes_around(256, 128, 64, 4):
        check_product(m, n, k, layout, BF16, config)


@pytest.mark.parametrize("family", ["sm70", "sm75"])
@pytest.mark.parametrize("layout, knob", layouts_of(KNOBS_OLDER))
def test_the_families_of_older_gpus(family, layout, knob):
    config = GemmConfig(family=family, block_m=64, block_n=64, **KNOBS_OLDER[knob])
    for m, n, k in sizes_around(64, 64, 32, 2):
        check_product(m, n, k, layout, HALF, config)


SM90 = dict(family="sm90", block_m=128, block_n=128, num_stages=3, cluster_m=1, cluster_n=1)
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
    "tall consumers 1x2": dict(block_m=256, warp_m=128, cluster_n=2),
    "one tall consumer": dict(block_m=128, warp_m=128, block_n=64),
    "wide": dict(block_n=256),
    "wide 2x1": dict(block_n=256, cluster_m=2),
    "narrow": dict(block_n=64, num_stages=6),
    "192": dict(block_n=192, cluster_m=2),
    "208": dict(block_n=208),
    "160 1x2": dict(block_n=160, cluster_n=2),
    "16": dict(block_n=16),
    "128 deep": dict(block_k=128, block_n=64),
    "128 deep, 2x1": dict(block_k=128, block_n=64, cluster_m=2),
    "256 deep": dict(block_k=256, block_m=64, block_n=32, num_stages=2),
    "split in 3": dict(split_k=3),
    "split in 2, 2x1": dict(split_k=2, cluster_m=2),
    "swapped, split in 5": dict(swap_ab=True, split_k=5, block_n=16),
    "swapped": dict(swap_ab=True),
    "swapped, 256 deep": dict(swap_ab=True, block_k=256, block_m=64, block_n=16, num_stages=3),
    "swapped, narrow": dict(swap_ab=True, block_m=64, block_n=16, num_stages=8),
    "swapped, 48 wide, 2x1": dict(swap_ab=True, block_n=48, cluster_m=2),
    "swapped, ordinary stores": dict(swap_ab=True, tma_stores=False),
    "one tile a CTA": dict(persistent=False),
    "one tile a CTA, ordinary stores": dict(persistent=False, tma_stores=False, cluster_n=2),
    "persistent": dict(persistent=True),
    "persistent 1x2": dict(persistent=True, cluster_n=2),
    "ping-pong": dict(ping_pong=True),
    "ping-pong 64x256, 2x1": dict(ping_pong=True, block_m=64, block_n=256, cluster_m=2),
    "ping-pong 128x128, 1x2": dict(ping_pong=True, cluster_n=2),
    "ping-pong 128x160, 2x1": dict(ping_pong=True, block_n=160, cluster_m=2),
    "ping-pong, ordinary stores, split in 3": dict(ping_pong=True, tma_stores=False, split_k=3),
    "ping-pong, swapped": dict(ping_pong=True, swap_ab=True, block_m=64, block_n=48),
    "prefetch": dict(prefetch=True),
    "K in a cluster of 2": dict(cluster_k=2),
    "K in a cluster of 2, ordinary stores": dict(cluster_k=2, tma_stores=False),
    "K in a cluster of 4, two consumers": dict(block_n=64, cluster_k=4, num_stages=4),
    "K in a cluster of 8": dict(block_m=64, block_n=64, cluster_k=8, num_stages=4),
    "K in a cluster of 2, split in 2": dict(cluster_k=2, split_k=2, num_stages=2),
    "K in a cluster of 4, 16": dict(swap_ab=True, block_m=64, block_n=16, cluster_k=4),
    "two of 56 rows": dict(block_m=112, warp_m=56),
    "two of 48 rows, direct stores": dict(block_m=96, warp_m=48, staged_stores=False),
    "48 rows": dict(swap_ab=True, block_m=48, block_n=16, block_k=256, prefetch=True),
    "8 rows": dict(swap_ab=True, block_m=8, block_n=48, num_stages=4),
    "40 rows, K in a cluster of 2": dict(swap_ab=True, block_m=40, block_n=32, cluster_k=2),
    "two of 32 rows": dict(block_m=64, warp_m=32, block_n=64, block_k=128),
    "24 rows, ordinary stores": dict(swap_ab=True, block_m=24, block_n=32, tma_stores=False),
}


@pytest.mark.skipif("not on_hopper()")
@pytest.mark.parametrize("layout, knob", layouts_of(KNOBS_SM90))
def test_every_knob_of_sm90(layout, knob):
    fields = {**SM90, **KNOBS_SM90[knob]}
    if fields["block_n"] % 64:  # the operand of that side comes in whole boxes of 64
        layout = "n" + layout[1] if fields.get("swap_ab") else layout[0] + "t"
    if fields.get("warp_m", fields["block_m"]) % 64:
        layout = layout[0] + "t" if fields.get("swap_ab") else "n" + layout[1]
    config = GemmConfig(**fields)
    depth = fields.get("block_k", 64)
    step = 8 if depth == 64 else 64  # deeper k-tiles take whole 64s
    splits = fields.get("split_k", 1) * fields.get("cluster_k", 1)
    least_k = (splits - 1) * depth + step if fields.get("cluster_k") else 0
    sizes = sizes_around(fields["block_m"], fields["block_n"], depth, fields["num_stages"])
    for m, n, k in sizes:
        m, n, k = (m + 7) // 8 * 8, (n + 7) // 8 * 8, (k + step - 1) // step * step
        check_product(m, n, max(k, least_k), layout, BF16, config)
    deep = max(320, least_k)
    check_product(3001, 1013, deep, "nt", BF16, config)  # many tiles a CTA, odd edges
    check_product(264, 392, max(192, least_k), layout, HALF, config, out_dtype=FLOAT)


@pytest.mark.skipif("not on_hopper()")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_widest_ping_pong_tile_stores_by_the_tma_only(layout):
    fields = {**SM90, "ping_pong": True, "block_n": 192, "cluster_m": 1, "cluster_n": 2}
    config = GemmConfig(**fields)
    sizes = sizes_around(fields["block_m"], fields["block_n"], 64, fields["num_stages"])
    for m, n, k in (*sizes, (3001, 1013, 320)):
        m, n, k = (m + 7) // 8 * 8, (n + 7) // 8 * 8, (k + 7) // 8 * 8
        check_product(m, n, k, layout, BF16, config)
    with pytest.raises(ValueError, match="it would spill"):
        check_product(264, 392, 192, layout, HALF, config, out_dtype=FLOAT)


@pytest.mark.skipif("not on_hopper()")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SWIZZLES_SM90)
def test_every_swizzle_of_sm90(name, layout):
    layout, fields, step = swizzle_case(layout, name, SM90)
    config = GemmConfig(**fields)
    depth = fields.get("block_k", 64)
    least_k = fields.get("cluster_k", 1) * depth
    for m, n, k in sizes_around(fields["block_m"], fields["block_n"], depth, fields["num_stages"]):
        m, n, k = (m + 7) // 8 * 8, (n + 7) // 8 * 8, (k + step - 1) // step * step
        check_product(m, n, max(k, least_k), layout, BF16, config)
    check_product(1000, 504, 320, layout, HALF, config)


def test_outputs_of_every_dtype_and_order():
    for dtype in (HALF, BF16):
        for out_dtype in (dtype, FLOAT):
            for pad in (8, 4, 2, 1):
                for column_major in (False, True):
                    for m, n, k in ((130, 72, 64), (33, 17, 40), (257, 129, 65)):
                        check_product(
                            m,
                            n,
                            k,
                            "nt",
                            dtype,
                            out_dtype=out_dtype,
                            pad=pad,
                            column_major=column_major,
                        )


def test_operands_at_every_alignment_and_pitch():
    """Shapes stay, addresses and pitches change: what fits one must not be used for the other."""
    m, n, k = 96, 80, 72
    for dtype in (HALF, BF16):
        for offset in (0, 1, 2, 4, 8):
            for pitch in (72, 73, 74, 76, 80, 96):
                store = integers(m * pitch + offset, dtype=dtype, seed=offset + pitch)
                a = store[offset:].as_strided((m, k), (pitch, 1), store.storage_offset() + offset)
                for b in (operands(m, n, k, "nt", dtype)[1], operands(m, n, k, "nn", dtype)[1]):
                    out = Guarded(m, n, dtype)
                    fastgemm.gemm(a, b, out=out.out)
                    out.check(expected(a, b, dtype), f"offset {offset} pitch {pitch}")


def test_any_strides():
    for dtype in (HALF, BF16):
        base = integers(70, 6, 90, dtype=dtype, seed=5)
        a = base[::2, 3, ::3]  # (35, 30): neither stride is 1
        b = base[:30, 1:5:3, ::5].permute(1, 0, 2)[1]  # (30, 18)
        row = base[3:4, 2, :30]
        column = base[:30, 2, 4:5]
        same_row = row.expand(12, 30)
        for x, y in (
            (a, b),
            (row, b),
            (a, column),
            (same_row, b),
            (b.t(), a.t()),
            (a.t()[:, :30], a[:30]),
        ):
            out = Guarded(x.shape[0], y.shape[1], dtype)
            fastgemm.gemm(x, y, out=out.out)
            out.check(expected(x, y, dtype), f"strides {x.stride()} {y.stride()}")
        spread = torch.full((70, 60), float("nan"), device="cuda", dtype=dtype)
        fastgemm.gemm(a, b, out=spread[::2, ::3][:, :18])
        assert torch.equal(spread[::2, ::3][:, :18], expected(a, b, dtype))
        assert spread[1::2].isnan().all() and spread[:, 1::3].isnan().all()


def test_negative_strides():
    cupy = pytest.importorskip("cupy")
    a = cupy.asarray(integers(40, 48, dtype=HALF, seed=1))
    b = cupy.asarray(integers(48, 56, dtype=HALF, seed=2))
    for x in (a[::-1], a[:, ::-1], a[::-1, ::-2]):
        y = b[:24] if x.shape[1] == 24 else b
        want = expected(torch.as_tensor(x.copy()), torch.as_tensor(y), HALF)
        assert torch.equal(torch.as_tensor(fastgemm.gemm(x, y)), want)
        want = expected(torch.as_tensor(y.T.copy()), torch.as_tensor(x.T.copy()), HALF)
        assert torch.equal(torch.as_tensor(fastgemm.gemm(y.T, x.T)), want)


def test_alpha_beta_and_c():
    for m, n, k in ((64, 64, 64), (33, 17, 40), (200, 136, 72), (128, 256, 0)):
        a, b = operands(m, n, k, "nt", HALF)
        c = integers(m, n, dtype=HALF, seed=9)
        for alpha, beta in ((1.0, 1.0), (2.0, -0.5), (0.5, 0.0), (0.0, 3.0)):
            out = Guarded(m, n, HALF)
            fastgemm.gemm(a, b, c=c, alpha=alpha, beta=beta, out=out.out)
            out.check(
                expected(a, b, HALF, c, alpha, beta), f"{m}x{n}x{k} alpha {alpha} beta {beta}"
            )
        in_place = c.clone()
        fastgemm.gemm(a, b, c=in_place, out=in_place)
        assert torch.equal(in_place, expected(a, b, HALF, c, 1.0, 1.0))


def test_what_is_not_asked_for_is_not_read():
    """beta 0: NaNs of C must not reach D. K = 0: D is zero, whatever it held."""
    nan = torch.full((64, 64), float("nan"), device="cuda", dtype=HALF)
    a, b = operands(64, 64, 64, "nt", HALF)
    assert torch.equal(fastgemm.gemm(a, b, c=nan, beta=0.0), expected(a, b, HALF))
    for shape in ((0, 8, 8), (8, 0, 8), (8, 8, 0), (0, 0, 0)):
        check_product(*shape, "nn", HALF)


def test_sums_are_float32_and_rounded_once():
    ones = torch.ones(16, 4096, device="cuda", dtype=HALF)
    assert (fastgemm.gemm(ones, ones.t()) == 4096).all()  # a float16 sum sticks at 2048
    a = torch.ones(16, 1024, device="cuda", dtype=BF16)
    b = torch.zeros(1024, 16, device="cuda", dtype=BF16)
    b[:257], b[512:768] = 1, -1
    assert (fastgemm.gemm(a, b) == 1).all()  # partial sums in bfloat16 would give 0


@pytest.mark.parametrize(
    "shape", [(4096, 4096, 4096), (4096, 4096, 64), (16, 4096, 4096), (256, 256, 65536)]
)
@pytest.mark.parametrize("dtype", [HALF, BF16])
def test_random_inputs_against_float64(shape, dtype):
    m, n, k = shape
    for layout in LAYOUTS:
        a = torch.randn(m, k, device="cuda", dtype=dtype) if layout[0] == "n" else None
        a = torch.randn(k, m, device="cuda", dtype=dtype).t() if a is None else a
        b = torch.randn(k, n, device="cuda", dtype=dtype) if layout[1] == "n" else None
        b = torch.randn(n, k, device="cuda", dtype=dtype).t() if b is None else b
        got = fastgemm.gemm(a, b)
        rows = torch.randint(0, m, (64,), device="cuda")
        want = a[rows].double() @ b.double()
        bound = a[rows].double().abs() @ b.double().abs()
        error = (got[rows].double() - want).abs()
        rounding = want.abs() * torch.finfo(dtype).eps + bound * k**0.5 * 2.0**-24 + 1e-6
        assert (error <= rounding).all(), (
            f"{layout}: {(error / rounding).max().item()} times the bound"
        )
        assert torch.equal(got, fastgemm.gemm(a, b)), "same inputs, same plan: same bits"


def test_batches():
    for batch, m, n, k in ((3, 64, 64, 64), (5, 33, 17, 40), (70000, 2, 3, 4), (2, 300, 264, 136)):
        a = integers(batch, m, k, dtype=BF16, seed=1)
        b = integers(batch, k, n, dtype=BF16, seed=2)
        for x, y in ((a, b), (a[:1], b), (a, b[0]), (a[0], b), (a.mT.contiguous().mT, b)):
            got = fastgemm.gemm(x, y)
            assert got.shape == (batch, m, n)
            assert torch.equal(got, expected(x, y, BF16))


def test_offsets_beyond_two_to_the_31():
    store = torch.empty(2**32 + 4096, device="cuda", dtype=HALF)
    a = store.as_strided((3, 64), (2**31, 1))
    a.copy_(integers(3, 64, dtype=HALF, seed=1))
    b = integers(64, 48, dtype=HALF, seed=2)
    assert torch.equal(fastgemm.gemm(a, b), expected(a, b, HALF))
    assert torch.equal(fastgemm.gemm(b.t(), a.t()), expected(b.t(), a.t(), HALF))
    x = integers(40, 64, dtype=HALF, seed=3)
    wide = store.as_strided((3, 48), (2**31, 1), 2048)
    fastgemm.gemm(a.clone(), b, out=wide)
    assert torch.equal(wide, expected(a, b, HALF))
    batched = store.as_strided((2, 64, 8), (2**31 + 8, 8, 1))
    batched.copy_(integers(2, 64, 8, dtype=HALF, seed=4))
    assert torch.equal(fastgemm.gemm(x, batched), expected(x, batched, HALF))


def test_a_chain_in_which_each_kernel_reads_what_the_one_before_wrote():
    """Dependent launches start early: they must neither read too soon nor overwrite too soon."""
    n = 512
    step = (
        torch.eye(n, device="cuda", dtype=BF16).roll(1, 0).contiguous()
    )  # row i becomes row i + 1
    start = integers(n, n, dtype=BF16, seed=3)
    for config in (None, GemmConfig(family="sm80")):
        x, y, weight = start.clone(), torch.empty_like(start), torch.empty_like(step)
        for i in range(200):
            if i % 7 == 0:
                weight.copy_(step)  # an ordinary kernel writes the operand just before
            fastgemm.gemm(weight, x, out=y, config=config)
            x, y = y, x
        assert torch.equal(x, start.roll(200, 0))


def test_threads_share_everything():
    """Cold caches, eight threads, eight shapes: results right, and each kernel made once."""
    fastgemm.clear_cache()
    before = fastgemm.cache_info()
    shapes = [(64 + 8 * i, 128, 256) for i in range(8)]
    wrong = []

    def work(seed):
        with torch.cuda.stream(torch.cuda.Stream()):
            for r in range(25):
                m, n, k = shapes[(seed + r) % len(shapes)]
                a, b = operands(m, n, k, "nt", BF16, seed=r)
                if not torch.equal(fastgemm.gemm(a, b), expected(a, b, BF16)):
                    wrong.append((m, n, k))

    in_threads(8, work)
    assert not wrong
    after = fastgemm.cache_info()
    assert after.misses - before.misses <= len(shapes)


def test_captured_in_a_graph_and_replayed_after_the_cache_was_cleared():
    a, b = operands(256, 128, 512, "nt", BF16)
    out = torch.empty(256, 128, device="cuda", dtype=BF16)
    fastgemm.gemm(a, b, out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fastgemm.gemm(a, b, out=out)
    fastgemm.clear_cache()
    for seed in range(3):
        a.copy_(integers(256, 512, dtype=BF16, seed=seed))
        out.fill_(float("nan"))
        graph.replay()
        assert torch.equal(out, expected(a, b, BF16))
