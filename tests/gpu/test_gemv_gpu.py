"""Family gemv: exact for few rows and few columns, wherever and in whatever order operands lie."""

import random

import pytest

torch = pytest.importorskip("torch")
import fastgemm  # noqa: E402
from exact import LAYOUTS, Guarded, check_product, expected, integers, operands  # noqa: E402
from fastgemm import GemmConfig  # noqa: E402

pytestmark = pytest.mark.gpu
HALF, BF16, FLOAT = torch.float16, torch.bfloat16, torch.float32
GEMV = GemmConfig(family="gemv")


@pytest.mark.parametrize("dtype", [HALF, BF16])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_few_rows_and_few_columns(layout, dtype):
    pick = random.Random(f"{layout}{dtype}")
    for i in range(60):
        few, many, k = pick.randint(1, 40), pick.randint(1, 700), pick.randint(0, 5000)
        if i % 3 == 0:  # 16-byte aligned rows
            few, many, k = (few + 7) // 8 * 8, (many + 7) // 8 * 8, (k + 7) // 8 * 8
        for m, n in ((few, many), (many, few)):
            check_product(m, n, k, layout, dtype, GEMV, seed=i)
            check_product(m, n, k, layout, dtype, seed=i)


# The planner's own, then fewer and more of everything.
KNOBS = {
    "t": [
        dict(),
        dict(dependent_launch=False),
        dict(block_m=1, warp_n=1, num_stages=1, block_n=1, block_k=256),
        dict(block_m=2, warp_n=2, num_stages=2, block_n=8, block_k=1024),
        dict(block_m=3, warp_n=4, num_stages=1, block_n=16, block_k=512),
        dict(block_m=7, warp_n=2, num_stages=1, block_n=2, block_k=2048),
        dict(block_m=4, warp_n=8, num_stages=1, block_n=64, block_k=256),
        dict(block_m=8, warp_n=16, num_stages=4, block_n=16, block_k=1024),
        dict(block_m=24, warp_n=16, num_stages=1, block_n=48, block_k=128),
        dict(block_m=64, warp_n=16, num_stages=2, block_n=16, block_k=512),
    ],
    "n": [
        dict(),
        dict(dependent_launch=False),
        dict(block_m=1, warp_n=8, num_stages=1, block_n=8, block_k=256),
        dict(block_m=2, warp_n=256, num_stages=1, block_n=512, block_k=32),
        dict(block_m=3, warp_n=32, num_stages=2, block_n=64, block_k=256),
        dict(block_m=8, warp_n=64, num_stages=1, block_n=64, block_k=256),
    ],
}


@pytest.mark.parametrize("split_k", [1, 5])
@pytest.mark.parametrize("layout", ["nt", "nn"])
def test_every_knob(layout, split_k):
    for knobs in KNOBS[layout[1]]:
        config = GemmConfig(family="gemv", swap_ab=False, split_k=split_k, **knobs)
        for m, n, k in ((1, 512, 4096), (3, 264, 1544), (2, 300, 1999), (19, 33, 9999), (70, 7, 8)):
            try:
                check_product(m, n, k, layout, BF16, config)
                check_product(m, n, k, layout, HALF, config, out_dtype=FLOAT)
            except ValueError as refusal:  # reads at any address take more of them
                assert "registers" in str(refusal) and (n % 8 or k % 8)
        swapped = {"nt": "nt", "nn": "tn"}[layout]  # the longer side lies as the knobs want it
        check_product(304, 2, 768, swapped, HALF, config.replace(swap_ab=None))


def test_every_offset_and_pitch_among_nans():
    for few, many, k in ((1, 77, 264), (3, 40, 530), (11, 50, 270)):
        for offset in range(9):
            for pitch in (0, 1, 2, 4, 8):
                for k_major in (True, False):
                    rows, cols = (many, k) if k_major else (k, many)
                    width = cols + pitch
                    store = torch.full((rows * width + 32,), float("nan"), device="cuda").to(BF16)
                    weight = store.as_strided((rows, cols), (width, 1), offset)
                    weight.copy_(integers(rows, cols, dtype=BF16, seed=offset))
                    b = weight.t() if k_major else weight
                    a = operands(few, many, k, "nt", BF16, seed=pitch)[0]
                    out = Guarded(few, many, BF16)
                    fastgemm.gemm(a, b, out=out.out, config=GEMV)
                    what = f"offset {offset}, pitch {width} of {cols}, k_major {k_major}"
                    out.check(expected(a, b, BF16), what)
                    out = Guarded(many, few, BF16)
                    fastgemm.gemm(b.t(), a.t(), out=out.out, config=GEMV)
                    out.check(expected(b.t(), a.t(), BF16), what)


def test_any_strides():
    base = integers(70, 6, 90, dtype=HALF, seed=5)
    b = base[:30, 1:5:3, ::5].permute(1, 0, 2)[1]  # (30, 18)
    row, column = base[3:4, 2, :30], base[:30, 2, 4:5]
    for x, y in ((row, b), (b.t(), column), (row.expand(3, 30), b), (base[:2, 3, ::3], b)):
        out = Guarded(x.shape[0], y.shape[1], HALF)
        fastgemm.gemm(x, y, out=out.out, config=GEMV)
        out.check(expected(x, y, HALF), f"strides {x.stride()} {y.stride()}")
    spread = torch.full((70, 60), float("nan"), device="cuda", dtype=HALF)
    fastgemm.gemm(row, b, out=spread[::35, ::3][:1, :18], config=GEMV)
    assert torch.equal(spread[:1, ::3][:, :18], expected(row, b, HALF))
    assert spread[1:].isnan().all() and spread[:, 1::3].isnan().all()


def test_negative_strides():
    cupy = pytest.importorskip("cupy")
    a = cupy.asarray(integers(2, 51, dtype=HALF, seed=1))
    b = cupy.asarray(integers(51, 56, dtype=HALF, seed=2))
    for y in (b[::-1], b[:, ::-1], b[::-1, ::-2]):
        for x in (a, a[:, ::-1], a[::-1]):
            want = expected(torch.as_tensor(x.copy()), torch.as_tensor(y.copy()), HALF)
            assert torch.equal(torch.as_tensor(fastgemm.gemm(x, y, config=GEMV)), want)


def test_batches():
    for batch, m, n, k in ((3, 1, 64, 64), (5, 2, 17, 41), (4000, 1, 3, 5), (2, 300, 3, 1037)):
        a = integers(batch, m, k, dtype=BF16, seed=1)
        b = integers(batch, k, n, dtype=BF16, seed=2)
        for x, y in ((a, b), (a[:1], b), (a, b[0]), (a[0], b), (a, b.mT.contiguous().mT)):
            assert torch.equal(fastgemm.gemm(x, y, config=GEMV), expected(x, y, BF16))


def test_alpha_beta_and_c():
    for m, n, k in ((1, 640, 264), (3, 17, 41), (200, 2, 72), (2, 256, 0)):
        a, b = operands(m, n, k, "nt", HALF)
        c = integers(m, n, dtype=HALF, seed=9)
        for alpha, beta in ((1.0, 1.0), (2.0, -0.5), (0.5, 0.0), (0.0, 3.0)):
            out = Guarded(m, n, HALF)
            fastgemm.gemm(a, b, c=c, alpha=alpha, beta=beta, out=out.out, config=GEMV)
            out.check(expected(a, b, HALF, c, alpha, beta), f"{m}x{n}x{k} {alpha} {beta}")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_random_inputs_against_float64_and_the_same_bits_again(layout):
    for dtype in (HALF, BF16):
        for m, n, k in ((1, 4096, 4096), (2, 1000, 14336), (4096, 1, 4095), (16, 999, 4095)):
            a, b = (torch.randn(s, device="cuda", dtype=dtype) for s in ((m, k), (k, n)))
            a = a if layout[0] == "n" else a.t().contiguous().t()
            b = b if layout[1] == "n" else b.t().contiguous().t()
            got = fastgemm.gemm(a, b, config=GEMV, out_dtype="float32")
            want = a.double() @ b.double()
            bound = (a.double().abs() @ b.double().abs()) * k**0.5 * 2.0**-24
            assert ((got.double() - want).abs() <= bound + 1e-6).all()
            for _ in range(3):
                assert torch.equal(got, fastgemm.gemm(a, b, config=GEMV, out_dtype="float32"))


def test_the_weights_are_written_just_before():
    """Their first chunks are brought into L2 while the kernel that writes them still runs."""
    n = 2048
    x = integers(1, n, dtype=BF16, seed=3)
    one = torch.eye(n, device="cuda", dtype=BF16)
    for layout in ("nt", "nn"):
        weight = torch.empty(n, n, device="cuda", dtype=BF16)
        b = weight.t() if layout == "nt" else weight
        for i in range(50):
            new = integers(n, n, dtype=BF16, seed=i)
            torch.cuda.synchronize()
            fastgemm.gemm(new, one, out=weight)  # a dependent launch follows
            got = fastgemm.gemm(x, b, config=GEMV)
            want = expected(x, new.t() if layout == "nt" else new, BF16)
            assert torch.equal(got, want), f"{layout}, repeat {i}"
