"""Operands that are copied into aligned rows first: exact at every alignment, stride and batch."""

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
BOTH = GemmConfig(repack_a=True, repack_b=True)


def families():
    return ("sm80", "sm90") if torch.cuda.get_device_capability() == (9, 0) else ("sm80",)


@pytest.mark.parametrize("dtype", [HALF, BF16])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_odd_sizes_sampled_densely(layout, dtype):
    pick = random.Random(f"{layout}{dtype}")
    for i in range(20):
        m, n, k = (pick.randint(1, 300) for _ in range(3))
        config = GemmConfig(family=families()[i % len(families())], repack_a=True, repack_b=True)
        check_product(m, n, k, layout, dtype, config, seed=i)
    for m, n, k in ((999, 999, 999), (1999, 1001, 515), (129, 257, 4099)):
        check_product(m, n, k, layout, dtype)  # what the planner picks


def test_every_offset_and_pitch():
    check_every_offset_and_pitch(GemmConfig(repack_a=True), GemmConfig(repack_b=True))


def test_any_strides():
    b = operands(40, 48, 56, "nn", HALF)[1]
    for family in families():
        config = GemmConfig(family=family, repack_a=True, repack_b=True)
        for row_stride, col_stride in ((170, 3), (3, 130), (57, 2), (0, 1), (1, 0), (0, 0), (1, 1)):
            a = among_nans(40, 56, row_stride, col_stride, HALF, offset=5)
            out = Guarded(40, 48, HALF)
            fastgemm.gemm(a, b, out=out.out, config=config)
            out.check(expected(a, b, HALF), f"strides {row_stride}, {col_stride} {family}")


def test_negative_strides():
    cupy = pytest.importorskip("cupy")
    a = cupy.asarray(integers(41, 51, dtype=HALF, seed=1))
    b = cupy.asarray(integers(51, 56, dtype=HALF, seed=2))
    for x in (a[::-1], a[:, ::-1], a[::-1, ::-2]):
        y = b[:26] if x.shape[1] == 26 else b
        for config in (None, BOTH):
            want = expected(torch.as_tensor(x.copy()), torch.as_tensor(y), HALF)
            assert torch.equal(torch.as_tensor(fastgemm.gemm(x, y, config=config)), want)
            want = expected(torch.as_tensor(y.T.copy()), torch.as_tensor(x.T.copy()), HALF)
            assert torch.equal(torch.as_tensor(fastgemm.gemm(y.T, x.T, config=config)), want)


def test_batches():
    for batch, m, n, k in ((3, 64, 64, 64), (5, 33, 17, 41), (3000, 2, 3, 5), (2, 300, 263, 137)):
        a = integers(batch, m, k, dtype=BF16, seed=1)
        b = integers(batch, k, n, dtype=BF16, seed=2)
        for x, y in ((a, b), (a[:1], b), (a, b[0]), (a[0], b), (a.mT.contiguous().mT, b)):
            assert torch.equal(fastgemm.gemm(x, y, config=BOTH), expected(x, y, BF16))


@pytest.mark.parametrize("split_k", [1, 3])
def test_together_with_other_knobs(split_k):
    for family in families():
        for swap_ab in (False, True) if family == "sm90" else (False,):
            for repack in ((True, False), (False, True), (True, True)):
                config = GemmConfig(
                    family=family,
                    swap_ab=swap_ab,
                    split_k=split_k,
                    repack_a=repack[0],
                    repack_b=repack[1],
                )
                a, b = operands(136, 120, 648, "nt", HALF)
                c = integers(136, 120, dtype=HALF, seed=9)
                out = Guarded(136, 120, HALF)
                fastgemm.gemm(a, b, c=c, alpha=0.5, beta=2.0, out=out.out, config=config)
                out.check(expected(a, b, HALF, c, 0.5, 2.0), str(config))
                check_product(136, 121, 648, "nt", HALF, config, out_dtype=FLOAT)


def test_odd_columns_of_d_by_every_kind_of_store():
    for family in families():
        for swap_ab in (False, True) if family == "sm90" else (False,):
            for block_n in (16, 48, 64, 96, 128):
                config = GemmConfig(family=family, swap_ab=swap_ab, block_n=block_n)
                for m, n in ((131, 129), (129, 400), (64, 33)):
                    for column_major in (False, True):
                        for out_dtype in (BF16, FLOAT):
                            check_product(
                                m,
                                n,
                                96,
                                "nt",
                                BF16,
                                config,
                                out_dtype=out_dtype,
                                pad=1,
                                column_major=column_major,
                            )


def test_a_chain_in_which_each_kernel_reads_what_the_one_before_wrote():
    """The copy starts early too: it must neither read too soon nor overwrite a copy in use."""
    n = 511
    step = torch.eye(n, device="cuda", dtype=BF16).roll(1, 0).contiguous()
    start = integers(n, n, dtype=BF16, seed=3)
    x, y, weight = start.clone(), torch.empty_like(start), torch.empty_like(step)
    for i in range(300):
        if i % 7 == 0:
            weight.copy_(step)
        fastgemm.gemm(weight, x, out=y, config=BOTH)
        x, y = y, x
    assert torch.equal(x, start.roll(300, 0))


def test_captured_and_replayed_on_two_streams_at_once():
    graphs = []
    for seed in range(2):
        a, b = operands(513, 255, 1021, "nt", BF16, seed=seed)
        out = torch.empty(513, 255, device="cuda", dtype=BF16)
        fastgemm.gemm(a, b, out=out, config=BOTH)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(10):
                fastgemm.gemm(a, b, out=out, config=BOTH)
        # The graph reads a and b: they stay.
        graphs.append((graph, torch.cuda.Stream(), out, expected(a, b, BF16), (a, b)))
    for _ in range(20):
        for graph, stream, out, *_ in graphs:
            with torch.cuda.stream(stream):
                out.fill_(float("nan"))
                graph.replay()
        torch.cuda.synchronize()
        for _, _, out, want, _ in graphs:
            assert torch.equal(out, want)
