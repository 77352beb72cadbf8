"""Many products of chance, and split K on two streams for a while.

FASTGEMM_SOAK_PRODUCTS=10000 and FASTGEMM_SOAK_SECONDS=30 make it a long one (143 s with -n 24).
"""

import functools
import os
import random
import time

import pytest

torch = pytest.importorskip("torch")
import fastgemm  # noqa: E402
from exact import LAYOUTS, Guarded, expected, operands  # noqa: E402
from fastgemm import GemmConfig  # noqa: E402
from threads import in_threads  # noqa: E402

pytestmark = pytest.mark.gpu
PRODUCTS = int(os.environ.get("FASTGEMM_SOAK_PRODUCTS", "320"))
SECONDS = float(os.environ.get("FASTGEMM_SOAK_SECONDS", "2"))
PARTS = 32  # for pytest-xdist
FAR_PART = 0  # the only one whose strides reach to offsets of 2**31: its store is 4 GiB


def extent(pick):
    """Small and large ones alike often; of those, multiples of 8 as often as others."""
    size = int(2 ** pick.uniform(0, 12.5))
    return pick.choice((size, (size + 7) // 8 * 8))


def shape_of_chance(pick):
    while True:
        m, n, k = extent(pick), extent(pick), extent(pick)
        if pick.random() < 0.1:
            k = min(16 * k, 60_000)  # sums of products up to 9 stay exact in float32
        if m * n * k < 4e9 and m * k + k * n + m * n < 2e7:
            return m, n, k


@functools.cache
def far_store():
    return torch.empty(2**31 + 2**25, device="cuda", dtype=torch.float16)


def laid_out_by_chance(x, pick, far):
    """The same elements behind an offset and with padded rows (columns, if those are contiguous),
    or with rows so far apart that the last one begins 2**31 elements behind the first."""
    if x.stride(-1) != 1:
        return laid_out_by_chance(x.t(), pick, far).t()
    rows, cols = x.shape
    if far and rows > 1:
        pitch, first = 2**31 // (rows - 1), pick.randrange(16)
        if pitch < cols:
            return x
        copy = far_store().view(x.dtype).as_strided((rows, cols), (pitch, 1), first)
    else:
        pad, first = (8 * pick.randrange(3), 8) if pick.random() < 0.5 else (pick.randrange(9), 3)
        store = torch.full((rows * (cols + pad) + first,), float("nan"), device="cuda").to(x.dtype)
        copy = store.as_strided((rows, cols), (cols + pad, 1), first)
    return copy.copy_(x)


@pytest.mark.parametrize("part", range(PARTS))
def test_products_of_chance(part):
    for i in range(part, PRODUCTS, PARTS):
        pick = random.Random(i)
        m, n, k = shape_of_chance(pick)
        layout, dtype = pick.choice(LAYOUTS), pick.choice((torch.float16, torch.bfloat16))
        out_dtype = torch.float32 if pick.random() < 0.2 else dtype
        a, b = operands(m, n, k, layout, dtype, seed=i)
        far = part == FAR_PART and pick.random() < 0.2
        if pick.random() < 0.5:
            a = laid_out_by_chance(a, pick, far)
        if pick.random() < 0.5:
            b = laid_out_by_chance(b, pick, far and a.untyped_storage().nbytes() < 2**32)
        out = Guarded(m, n, out_dtype, pick.choice((8, 3)), column_major=pick.random() < 0.2)
        fastgemm.gemm(a, b, out=out.out)
        what = f"product {i}: {m}x{n}x{k} {layout} {a.stride()} {b.stride()} {dtype} {out_dtype}"
        out.check(expected(a, b, out_dtype), what)


def test_split_k_of_two_threads_on_two_streams():
    """Workspaces belong to a call: no product may find another's partial sums."""
    cases = [
        (m, n, k, GemmConfig(family=family, split_k=split_k))
        for m, n, k in ((128, 256, 8192), (64, 64, 20_000), (200, 72, 4096))
        for family, split_k in (("sm90", 8), ("sm90", 3), ("sm80", 5), ("gemv", 4))
        if family != "gemv" or m <= 64
    ]

    def work(thread):
        pick = random.Random(thread)
        with torch.cuda.stream(torch.cuda.Stream()):
            made = []
            for m, n, k, config in cases:
                a, b = operands(m, n, k, "nt", torch.bfloat16, seed=thread)
                made.append((a, b, expected(a, b, torch.bfloat16), config))
            calls, end = 0, time.monotonic() + SECONDS
            while time.monotonic() < end:
                batch = [pick.choice(made) for _ in range(64)]
                results = [fastgemm.gemm(a, b, config=config) for a, b, _, config in batch]
                calls += len(batch)
                for got, (_, _, want, config) in zip(results, batch, strict=True):
                    assert torch.equal(got, want), (tuple(got.shape), config)
        return calls

    calls = in_threads(2, work)
    print(f"{sum(calls)} products")
    assert min(calls) > 0
