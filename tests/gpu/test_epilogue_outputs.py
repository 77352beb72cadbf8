"""Gated and quantised results, and what epilogues leave besides, on a real GPU against float64."""

import fastgemm
import pytest

torch = pytest.importorskip("torch")
from epilogue_cases import CONFIGS, on_hopper, vector  # noqa: E402
from exact import Guarded, integers, operands  # noqa: E402
from fastgemm import Epilogue, GemmConfig  # noqa: E402
from torch.nn import functional  # noqa: E402

pytestmark = pytest.mark.gpu
HALF, BF16, FLOAT = torch.float16, torch.bfloat16, torch.float32

GATED_CONFIGS = {
    "default": {},
    "columns by the TMA": dict(family="sm90", block_m=128, block_n=128, swap_ab=False),
    "256 columns in a cluster": dict(family="sm90", block_m=128, block_n=256, cluster_m=2),
    "96 columns, ordinary stores": dict(family="sm90", block_n=96, tma_stores=False),
    "rows": dict(family="sm90", swap_ab=True, block_m=64, block_n=16),
    "rows of two, deep": dict(family="sm90", swap_ab=True, block_m=128, block_n=32, block_k=128),
    "48 rows": dict(family="sm90", swap_ab=True, block_m=48, block_n=32),
    "K in a cluster": dict(family="sm90", swap_ab=False, block_m=64, block_n=64, cluster_k=2),
    "rows, K in a cluster": dict(
        family="sm90", swap_ab=True, block_m=64, block_n=16, cluster_k=2
    ),
    "rows, 16 columns for each of two": dict(
        family="sm90", swap_ab=True, block_m=16, block_n=32, cluster_k=2
    ),
    "split": dict(family="sm90", split_k=2),
    "sm80": dict(family="sm80"),
    "sm80 split": dict(family="sm80", split_k=3),
    "gemv": dict(family="gemv"),
}


def columns_of(x, order):
    """The gates and the ups of an array's last dimension."""
    return (x[..., ::2], x[..., 1::2]) if order == "interleaved" else x.chunk(2, dim=-1)


@pytest.mark.parametrize("order", ["interleaved", "blocked"])
@pytest.mark.parametrize("name", GATED_CONFIGS)
def test_gated_results(name, order):
    if "sm90" in str(GATED_CONFIGS[name]) and not on_hopper():
        pytest.skip("no Hopper GPU")
    config = GemmConfig(**GATED_CONFIGS[name])
    for m, n, k, layout in ((136, 272, 256, "nt"), (13, 528, 128, "nt"), (72, 208, 256, "nn")):
        if GATED_CONFIGS[name].get("block_m", 64) % 64:
            layout = "nt"  # tiles of fewer rows need A contiguous along k
        for dtype, out_dtype in ((BF16, BF16), (HALF, FLOAT)):
            a, b = operands(m, n, k, layout, dtype)
            a, b = a / 4, b / 4
            bias, rows = vector(n, FLOAT, 3), vector(m, FLOAT, 4)
            acc = a.double() @ b.double() * rows[:, None].double() + bias.double()
            gate, up = columns_of(acc, order)
            want = functional.silu(gate) * up
            what = f"{name} {order} {m}x{n}x{k} {layout} {dtype}"
            for column_major in (False, True):
                out = Guarded(m, n // 2, out_dtype, column_major=column_major)
                fastgemm.gemm(a, b, activation="silu", gated=order, bias=bias, scale_a=rows,
                              out=out.out, config=None if column_major else config)  # fmt: skip
                out.check_close(want, 1e-5 * (1 + gate.abs() * up.abs()), what)


@pytest.mark.parametrize("order", ["interleaved", "blocked"])
def test_gated_expressions_and_odd_sizes(order):
    for m, n, k in ((64, 64, 64), (65, 34, 40), (1, 2, 8), (129, 1026, 72), (40, 4096, 512)):
        a, b = operands(m, n, k, "nt", BF16)
        a = a / 8
        gate, up = columns_of(a.double() @ b.double(), order)
        residual, scale = integers(m, n // 2, dtype=BF16, seed=3), vector(n // 2, FLOAT, 4)
        amax = torch.zeros(1, device="cuda")
        epilogue = Epilogue(
            "amax(gelu(gate) * up + r[m, n]) * s[n]", gated=order, r=residual, s=scale, amax=amax
        )
        out = Guarded(m, n // 2, BF16)
        fastgemm.gemm(a, b, epilogue=epilogue, out=out.out)
        value = functional.gelu(gate) * up + residual.double()
        out.check_close(value * scale.double(), 1e-4 * (1 + value.abs()), f"{m}x{n}x{k} {order}")
        assert amax.item() == pytest.approx(value.abs().max().item(), rel=1e-5)


def test_gated_batches():
    a, b = integers(3, 24, 64, dtype=BF16, seed=1) / 8, integers(3, 64, 96, dtype=BF16, seed=2)
    for x, y in ((a, b), (a, b[0]), (a[0], b), (a.mT.contiguous().mT, b)):
        for order in ("interleaved", "blocked"):
            got = fastgemm.gemm(x, y, activation="silu", gated=order, out_dtype=FLOAT)
            gate, up = columns_of(x.double() @ y.double(), order)
            want = functional.silu(gate) * up
            assert torch.allclose(got.double(), want, rtol=1e-5, atol=1e-4)


NARROW = {
    torch.int8: (-128, 127),
    torch.float8_e4m3fn: (-448, 448),
    torch.float8_e5m2: (-57344, 57344),
}


def quantised(x, dtype):
    """The float64 reference, rounded once to float32 before: torch does not know the direct way."""
    x = x.float().clamp(*NARROW[dtype])
    return (x.round() if dtype == torch.int8 else x).to(dtype)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", [None, *CONFIGS])
def test_quantised_results(name, dtype):
    if name and "sm90" in name and not on_hopper():
        pytest.skip("no Hopper GPU")
    config = GemmConfig(**CONFIGS[name]) if name else None
    for m, n, k in ((136, 208, 128), (65, 33, 40))[: 2 if name is None else 1]:
        a, b = operands(m, n, k, "nt", HALF)
        exact = a.double() @ b.double()
        powers = 2.0 ** torch.arange(-3, 5, device="cuda")
        for scale in (0.25, powers[:1], powers.repeat(n)[:n], powers.repeat(m)[:m, None]):
            got = fastgemm.gemm(a, b, out_scale=scale, out_dtype=dtype, config=config)
            assert got.dtype == dtype
            want = quantised(exact / scale, dtype)
            assert torch.equal(got.view(torch.uint8), want.view(torch.uint8)), (scale, m, n)
        buffer = torch.full((m + 2, n + 16), 3, device="cuda", dtype=torch.uint8).view(dtype)
        out = buffer[1:-1, 8:-8] if n % 8 == 0 else buffer[1:-1, 7:-9]
        fastgemm.gemm(a, b, out=out, config=config)
        want = quantised(exact, dtype)
        assert torch.equal(out.reshape(-1).view(torch.uint8), want.reshape(-1).view(torch.uint8))
        out.view(torch.uint8).fill_(3)
        assert (buffer.view(torch.uint8) == 3).all(), "wrote outside of D"


def test_quantised_results_saturate_and_keep_nan():
    a = torch.eye(64, device="cuda", dtype=HALF)
    b = torch.zeros(64, 64, device="cuda", dtype=HALF)
    rows = [float("nan"), float("inf"), float("-inf"), 1e6, -1e6, 464.0, 17.5, 18.5, -0.5, 1e-9]
    addend = torch.zeros(64, 1, device="cuda")
    addend[: len(rows), 0] = torch.tensor(rows)
    for dtype in NARROW:
        got = fastgemm.gemm(a, b, bias=addend, out_dtype=dtype)
        if dtype == torch.int8:
            want = [0, 127, -128, 127, -128, 127, 18, 18, 0, 0]
            assert got[: len(rows), 5].tolist() == want
            continue
        assert got[0].float().isnan().all()
        want = quantised(addend.double(), dtype)[1:].expand(63, 64)
        assert torch.equal(got[1:].float(), want.float())


@pytest.mark.parametrize("name", [None, *CONFIGS])
def test_keep_and_amax(name):
    if name and "sm90" in name and not on_hopper():
        pytest.skip("no Hopper GPU")
    config = GemmConfig(**CONFIGS[name]) if name else None
    for m, n, k in ((136, 208, 256), (131, 77, 64))[: 2 if name is None else 1]:
        a, b = operands(m, n, k, "nt", HALF)
        bias = vector(n, FLOAT, 3)
        so_far = a.double() @ b.double() + bias.double()
        for dtype in (HALF, BF16, FLOAT):
            for column_major in (False, True):
                kept = Guarded(m, n, dtype, column_major=column_major)
                amax = torch.zeros(1, device="cuda")
                got = fastgemm.gemm(
                    a, b, bias=bias, activation="relu", keep=kept.out, amax=amax, config=config,
                    out_dtype=FLOAT,
                )  # fmt: skip
                assert torch.equal(got.double(), torch.relu(so_far))
                kept.check(so_far.to(dtype), f"keep {m}x{n} {dtype}")
                assert amax.item() == torch.relu(so_far).max().item()


def test_amax_is_raised_and_nan_wins():
    a, b = operands(300, 264, 64, "nt", BF16)
    exact = (a.double() @ b.double()).abs().max().item()
    amax = torch.full((1,), 1e6, device="cuda")
    fastgemm.gemm(a, b, amax=amax)
    assert amax.item() == 1e6
    amax.zero_()
    fastgemm.gemm(a, b, amax=amax, out_dtype=torch.float8_e4m3fn, out_scale=0.5)
    assert amax.item() == exact
    bias = torch.zeros(264, device="cuda")
    bias[100] = float("nan")
    fastgemm.gemm(a, b, amax=amax, bias=bias)
    assert amax.isnan().all()
