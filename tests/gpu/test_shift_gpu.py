"""Rows that begin anywhere, read in aligned chunks: exact at every address, stride and batch."""

import itertools
import random

import pytest

torch = pytest.importorskip("torch")
import fastgemm  # noqa: E402
from exact import (  # noqa: E402
    LAYOUTS,
    Guarded,
    among_nans,
    check_every_offset_and_pitch,
    check_product,
    expected,
    integers,
    operands,
)
from fastgemm import GemmConfig  # noqa: E402

pytestmark = pytest.mark.gpu
HALF, BF16, FLOAT = torch.float16, torch.bfloat16, torch.float32
BOTH = GemmConfig(shift_a=True, shift_b=True)
WHICH = [dict(shift_a=True), dict(shift_b=True), dict(shift_a=True, shift_b=True)]


@pytest.mark.parametrize("dtype", [HALF, BF16])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_odd_sizes_sampled_densely(layout, dtype):
    pick = random.Random(f"{layout}{dtype}")
    for i in range(12):
        m, n, k = (pick.randint(1, 300) for _ in range(3))
        check_product(m, n, k, layout, dtype, GemmConfig(**WHICH[i % 3]), seed=i)
    for m, n, k in ((999, 999, 999), (17, 1001, 4099), (129, 257, 4099)):
        check_product(m, n, k, layout, dtype, BOTH)


def test_every_offset_and_pitch():
    check_every_offset_and_pitch(GemmConfig(shift_a=True), GemmConfig(shift_b=True))


def needs_hopper():
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("needs compute capability 9.0")


@pytest.mark.parametrize("swap_ab", [False, True])
def test_every_offset_and_pitch_straightened(swap_ab):
    needs_hopper()
    fields = dict(family="sm90", swap_ab=swap_ab)
    a, b = dict(shift_a=True, repack_b=True), dict(shift_b=True, repack_a=True)
    check_every_offset_and_pitch(GemmConfig(**fields, **a), GemmConfig(**fields, **b))


def test_every_tile_straightened():
    needs_hopper()
    tiles = [(8, 16, 3), (24, 48, 4), (56, 16, 11), (64, 112, 4), (128, 96, 3), (256, 80, 2)]
    for i, (block_m, block_n, num_stages) in enumerate(tiles):
        tile = dict(family="sm90", block_m=block_m, block_n=block_n, num_stages=num_stages)
        for swap_ab, persistent in itertools.product((False, True), (False, True)):
            which = WHICH[(i + swap_ab + persistent) % 3]
            both = dict(repack_a=not which.get("shift_a"), repack_b=not which.get("shift_b"))
            config = GemmConfig(**tile, **both, **which, swap_ab=swap_ab, persistent=persistent)
            check_product(520, 1200, 667, "nt", BF16, config, seed=i)
    for layout in LAYOUTS:
        tile = dict(family="sm90", block_m=64, block_n=64, ping_pong=True)
        config = GemmConfig(shift_a=True, shift_b=True, **tile)
        check_product(1201, 1333, 667, layout, HALF, config)


def test_every_tile():
    tiles = itertools.product((16, 32, 64, 128), (16, 64, 96, 128))
    for i, (block_m, block_n) in enumerate(tiles):
        block_k, num_stages = ((32, 3), (64, 2), (128, 1))[i % 3]
        tile = dict(block_m=block_m, block_n=block_n, block_k=block_k, num_stages=num_stages)
        layout = LAYOUTS[(i + i // 4) % 4]
        check_product(131, 133, 333, layout, BF16, GemmConfig(**tile, **WHICH[i % 3]), FLOAT)


def test_strides_that_share_elements_or_run_backwards():
    b = operands(40, 48, 56, "nn", HALF)[1]
    for row_stride in (0, 1, 3, 57):
        a = among_nans(40, 56, row_stride, 1, HALF, offset=5)
        out = Guarded(40, 48, HALF)
        fastgemm.gemm(a, b, out=out.out, config=BOTH)
        out.check(expected(a, b, HALF), f"row stride {row_stride}")
    cupy = pytest.importorskip("cupy")
    x = cupy.asarray(integers(41, 51, dtype=HALF, seed=1))[::-1]
    y = cupy.asarray(integers(51, 55, dtype=HALF, seed=2))[::-1]
    want = expected(torch.as_tensor(x.copy()), torch.as_tensor(y.copy()), HALF)
    assert torch.equal(torch.as_tensor(fastgemm.gemm(x, y, config=BOTH)), want)


def test_batches():
    for batch, m, n, k in ((3, 64, 64, 64), (5, 33, 17, 41), (3000, 2, 3, 5), (2, 300, 263, 137)):
        a = integers(batch, m, k, dtype=BF16, seed=1)
        b = integers(batch, k, n, dtype=BF16, seed=2)
        for x, y in ((a, b), (a[:1], b), (a, b[0]), (a[0], b), (a.mT.contiguous().mT, b)):
            assert torch.equal(fastgemm.gemm(x, y, config=BOTH), expected(x, y, BF16))


@pytest.mark.parametrize("split_k", [1, 3])
def test_together_with_other_knobs(split_k):
    knobs = [*WHICH, dict(shift_a=True, repack_b=True), dict(repack_a=True, shift_b=True)]
    for fields in knobs:
        config = GemmConfig(family="sm80", split_k=split_k, **fields)
        a, b = operands(136, 121, 647, "nt", HALF)
        c = integers(136, 121, dtype=HALF, seed=9)
        out = Guarded(136, 121, HALF)
        fastgemm.gemm(a, b, c=c, alpha=0.5, beta=2.0, out=out.out, config=config)
        out.check(expected(a, b, HALF, c, 0.5, 2.0), str(config))


def test_the_planner_shifts_weights_of_odd_depth_for_a_few_tokens():
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("what a copy costs beside it differs from GPU to GPU")
    for m in (4, 16, 64):
        picked = fastgemm.plan(m, 28672, 4095, dtype="bfloat16", device=0).config
        assert picked.shift_b and not picked.repack_b
        check_product(m, 28672, 4095, "nt", BF16)
        check_product(m, 4095, 4096, "nn", BF16)


def test_the_same_bits_every_time():
    generator = torch.Generator(device="cuda").manual_seed(5)
    x, w = (torch.randn(r, 4095, device="cuda", generator=generator).to(BF16) for r in (16, 4096))
    first = fastgemm.gemm(x, w.t())
    for _ in range(20):
        assert torch.equal(fastgemm.gemm(x, w.t()), first)
