"""Rows that no TMA takes as they lie, dealt out to eight matrices: exact at every alignment."""

import random

import pytest

torch = pytest.importorskip("torch")
import fastgemm  # noqa: E402
from exact import Guarded, among_nans, check_product, expected, operands  # noqa: E402
from fastgemm import GemmConfig  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif("torch.cuda.get_device_capability() != (9, 0)"),
]
HALF, BF16, FLOAT = torch.float16, torch.bfloat16, torch.float32


def on_both_sides(x, weights, dtype, config_of, what):
    """tokens x weights, and the transposed product, whose first operand is the weights."""
    m, n = x.shape[0], weights.shape[1]
    for a, b, swap_ab in ((x, weights, True), (weights.t(), x.t(), False)):
        rows, cols = (m, n) if swap_ab else (n, m)
        out = Guarded(rows, cols, dtype, pad=7)
        fastgemm.gemm(a, b, out=out.out, config=config_of(swap_ab))
        out.check(expected(a, b, dtype), f"{what} {swap_ab=}")


def test_every_offset_and_pitch():
    m, n, k = 24, 523, 200
    x = operands(m, n, k, "nt", BF16)[0]
    for offset in range(9):
        for pitch in (200, 201, 202, 204, 208, 227):
            weights = among_nans(n, k, pitch, 1, BF16, offset).t()
            on_both_sides(
                x,
                weights,
                BF16,
                lambda swap_ab: GemmConfig(deal_rows=True, swap_ab=swap_ab),
                f"offset {offset} pitch {pitch}",
            )


KNOBS = {
    "64x16": dict(block_m=64, block_n=16),
    "two of 64 rows": dict(block_m=128, block_n=32),
    "48 rows": dict(block_m=48, block_n=64),
    "ping-pong": dict(block_m=64, block_n=64, ping_pong=True),
    "1x2": dict(block_m=64, block_n=32, cluster_n=2),
    "2x1": dict(block_m=64, block_n=32, cluster_m=2),
    "K in a cluster of 4": dict(block_m=64, block_n=32, cluster_k=4),
    "split in 3": dict(block_m=64, block_n=32, split_k=3),
    "staged stores": dict(staged_stores=True),
    "one stage": dict(num_stages=1),
}


@pytest.mark.parametrize("dtype", [HALF, BF16])
@pytest.mark.parametrize("knob", KNOBS)
def test_together_with_other_knobs(knob, dtype):
    config = GemmConfig(deal_rows=True, **KNOBS[knob])
    for m, n, k in ((33, 1025, 1023), (64, 4100, 515), (8, 9, 257), (128, 2048, 4095)):
        check_product(m, n, k, "nt", dtype, config)
    check_product(40, 1021, 333, "nt", dtype, config, out_dtype=FLOAT)


def test_sizes_sampled_densely():
    pick = random.Random(7)
    for i in range(60):
        m, n, k = pick.randint(1, 160), pick.randint(8, 3000), pick.randint(1, 3000)
        layout = pick.choice(("nt", "tt"))
        weights_along_k = operands(m, n, k, layout, BF16)[1].stride(0) == 1
        assert weights_along_k
        check_product(m, n, k, layout, BF16, GemmConfig(deal_rows=n >= m, swap_ab=True), seed=i)


def test_the_planner_deals_where_copying_would_take_longer_than_the_product():
    plan = fastgemm.plan(64, 4096, 4095, dtype="bfloat16", layout="nt", arch="H200")
    assert plan.config.deal_rows and not plan.config.repack_b
    for m in (16, 64, 128):
        check_product(m, 4096, 4095, "nt", BF16)
        check_product(4096, m, 4095, "nt", BF16)


def test_other_addresses_of_a_known_product():
    """A call that was planned for one offset is launched again for others."""
    m, n, k = 16, 520, 255
    x = operands(m, n, k, "nt", BF16)[0]
    config = GemmConfig(deal_rows=True)
    for offset in (0, 1, 3, 7, 2):
        weights = among_nans(n, k, k, 1, BF16, offset, seed=offset).t()
        got = fastgemm.gemm(x, weights, config=config)
        assert torch.equal(got, expected(x, weights, BF16))
