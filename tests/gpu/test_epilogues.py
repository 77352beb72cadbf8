"""Fused epilogues on a real GPU: every form, family, dtype and order against float64."""

import re

import fastgemm
import pytest

torch = pytest.importorskip("torch")
from exact import LAYOUTS, Guarded, integers, operands  # noqa: E402
from fastgemm import Epilogue, GemmConfig  # noqa: E402
from torch.nn import functional  # noqa: E402

pytestmark = pytest.mark.gpu
HALF, BF16, FLOAT = torch.float16, torch.bfloat16, torch.float32
ACTIVATIONS = {
    "relu": torch.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}


def on_hopper():
    return torch.cuda.get_device_capability() == (9, 0)


def vector(size, dtype, seed, offset=0, step=1):
    """Multiples of 1/8; with `offset` at an odd address, with `step` not side by side."""
    values = integers((size + offset) * step, dtype=dtype, seed=seed, most=16) / 8
    return values[offset * step :: step]


def parts_of(m, n, dtype, seed=5, **where):
    """The operands of the forms below, of several dtypes."""
    return {
        "bias": vector(n, dtype, seed, **where),
        "scale_a": vector(m, FLOAT, seed + 1, **where),
        "scale_b": vector(n, FLOAT, seed + 2, **where),
        "residual": integers(m, n, dtype=dtype, seed=seed + 3, most=16) / 8,
    }


def wide(x):
    return None if x is None else x.double()


def named(acc, bias=None, activation=None, scale_a=None, scale_b=None, residual=None):
    """The float64 reference of the named parts."""
    if scale_a is not None:
        acc = acc * wide(scale_a)[..., None]
    for factor in (scale_b,):
        acc = acc if factor is None else acc * wide(factor)
    for addend in (bias, residual):
        acc = acc if addend is None else acc + wide(addend)
    return ACTIVATIONS[activation](acc) if activation else acc


FORMS = {
    "bias": ("bias",),
    "scales": ("scale_a", "scale_b"),
    "residual": ("residual",),
    "all": ("bias", "scale_a", "scale_b", "residual"),
}


def check_form(m, n, k, layout, dtype, config=None, form="all", activation=None, out_dtype=None,
               where=None, **guard):  # fmt: skip
    a, b = operands(m, n, k, layout, dtype)
    a, b = a / 4, b / 4  # sums are exact, and the activations see values of all sizes
    given = {name: parts_of(m, n, dtype, **(where or {}))[name] for name in FORMS[form]}
    out = Guarded(m, n, out_dtype or dtype, **guard)
    returned = fastgemm.gemm(a, b, out=out.out, config=config, activation=activation, **given)
    assert returned is out.out
    want = named(a.double() @ b.double(), activation=activation, **given)
    size = named((a.double() @ b.double()).abs(), **{x: y.abs() for x, y in given.items()})
    out.check_close(want, 1e-5 * (size + 1), f"{m}x{n}x{k} {layout} {dtype} {form} {activation}")


SIZES = [(64, 64, 64), (130, 72, 96), (33, 17, 40), (1, 1, 8), (200, 264, 520), (257, 129, 65)]


@pytest.mark.parametrize("dtype", [HALF, BF16])
@pytest.mark.parametrize("form", FORMS)
def test_named_parts_at_awkward_sizes(form, dtype):
    for i, (m, n, k) in enumerate(SIZES):
        activation = [None, *ACTIVATIONS][i % 7]
        check_form(m, n, k, LAYOUTS[i % 4], dtype, form=form, activation=activation)


@pytest.mark.parametrize("dtype", [HALF, BF16])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation, dtype):
    for out_dtype in (dtype, FLOAT):
        check_form(136, 200, 128, "nt", dtype, activation=activation, out_dtype=out_dtype)


CONFIGS = {
    "sm90": dict(family="sm90", block_m=128, block_n=128),
    "sm90 wide": dict(family="sm90", block_m=128, block_n=256),
    "sm90 tall warps": dict(family="sm90", block_m=256, warp_m=128, block_n=128),
    "sm90 three consumers": dict(family="sm90", block_m=192, block_n=128),
    "sm90 208": dict(family="sm90", block_m=128, block_n=208),
    "sm90 cluster": dict(family="sm90", block_m=128, block_n=128, cluster_m=2),
    "sm90 ordinary stores": dict(family="sm90", block_m=128, block_n=128, tma_stores=False),
    "sm90 direct": dict(family="sm90", block_m=64, block_n=64, staged_stores=False),
    "sm90 split": dict(family="sm90", split_k=3),
    "sm90 swapped": dict(family="sm90", swap_ab=True, block_m=64, block_n=16),
    "sm90 swapped 48": dict(family="sm90", swap_ab=True, block_m=128, block_n=48),
    "sm90 swapped, ordinary": dict(family="sm90", swap_ab=True, block_n=64, tma_stores=False),
    "sm90 swapped split": dict(family="sm90", swap_ab=True, block_n=16, split_k=3),
    "sm90 cluster K": dict(family="sm90", block_m=64, block_n=64, cluster_k=2),
    "sm90 swapped cluster K": dict(
        family="sm90", swap_ab=True, block_m=64, block_n=16, cluster_k=2
    ),
    "sm90 56 rows": dict(family="sm90", block_m=112, warp_m=56),
    "sm90 swapped 40 rows": dict(family="sm90", swap_ab=True, block_m=40, block_n=32),
    "sm90 swapped 24 rows": dict(
        family="sm90", swap_ab=True, block_m=24, block_n=32, tma_stores=False
    ),
    "gemv": dict(family="gemv"),
    "sm80": dict(family="sm80", block_m=64, block_n=64),
    "sm80 large": dict(family="sm80", block_m=128, block_n=128),
    "sm80 odd tile": dict(family="sm80", block_m=48, block_n=80, warp_m=48, warp_n=16),
    "sm80 direct": dict(family="sm80", block_m=64, block_n=64, staged_stores=False),
    "sm80 split": dict(family="sm80", split_k=3),
    "sm75": dict(family="sm75"),
    "sm70": dict(family="sm70"),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_family_and_way_of_storing(name):
    if "sm90" in name and not on_hopper():
        pytest.skip("no Hopper GPU")
    config = GemmConfig(**CONFIGS[name])
    for dtype in (HALF, BF16)[: 1 if name in ("sm75", "sm70") else 2]:
        for m, n, k in ((136, 200, 256), (72, 1016, 192), (264, 64, 512)):
            check_form(m, n, k, "nt", dtype, config, activation="gelu")
            check_form(m, n, k, "nt", dtype, config, form="bias", out_dtype=FLOAT)


@pytest.mark.parametrize("name", ["sm90", "sm90 swapped", "sm80", "sm80 split"])
def test_outputs_of_every_order_and_alignment(name):
    if "sm90" in name and not on_hopper():
        pytest.skip("no Hopper GPU")
    config = GemmConfig(**CONFIGS[name])
    for column_major in (False, True):
        for pad in (8, 1):
            check_form(136, 264, 192, "nt", BF16, config, activation="silu", pad=pad,
                       column_major=column_major)  # fmt: skip


def test_vectors_at_every_address_and_stride():
    for where in (dict(offset=1), dict(offset=8), dict(step=2), dict(offset=3, step=3)):
        for m, n in ((64, 64), (65, 65), (136, 208)):
            check_form(m, n, 64, "nt", BF16, activation="relu", where=where)


def test_a_square_result_takes_the_bias_along_its_columns():
    """R08: neither the axis nor the dtype is guessed."""
    a = torch.zeros(64, 64, device="cuda", dtype=BF16)
    for dtype in (BF16, HALF, FLOAT):
        bias = torch.arange(64, device="cuda", dtype=dtype)
        want = bias.double().expand(64, 64).to(BF16)
        assert torch.equal(fastgemm.gemm(a, a, bias=bias), want)
        assert torch.equal(fastgemm.gemm(a, a, bias=bias[None]), want)
        assert torch.equal(fastgemm.gemm(a, a, bias=bias[:, None]), want.t())
        out = torch.empty(64, 64, device="cuda", dtype=BF16).t()
        assert torch.equal(fastgemm.gemm(a, a, bias=bias, out=out), want)


def test_broadcast_negative_and_overlapping_residuals():
    a, b = operands(96, 80, 64, "nt", BF16)
    exact = a.double() @ b.double()
    base = integers(96, 80, dtype=FLOAT, seed=3)
    for residual in (base, base[:1], base[:, :1], base[0], base.t().contiguous().t()):
        got = fastgemm.gemm(a, b, residual=residual, out_dtype=FLOAT)
        assert torch.equal(got.double(), exact + residual.double())
    out = integers(96, 80, dtype=BF16, seed=4)
    want = (exact + out.double()).to(BF16)
    assert torch.equal(fastgemm.gemm(a, b, residual=out, out=out), want)  # in place


def test_batches():
    a, b = integers(3, 40, 64, dtype=BF16, seed=1), integers(3, 64, 48, dtype=BF16, seed=2)
    residual = integers(3, 40, 48, dtype=BF16, seed=3)
    bias, rows = integers(3, 1, 48, dtype=FLOAT, seed=4), integers(3, 40, 1, dtype=FLOAT, seed=5)
    for x, y in ((a, b), (a, b[0]), (a[0], b), (a.mT.contiguous().mT, b)):
        for one_bias in (bias, bias[0], bias[0, 0]):
            got = fastgemm.gemm(
                x, y, bias=one_bias, residual=residual, scale_a=rows, out_dtype=FLOAT
            )
            want = x.double() @ y.double() * rows.double() + one_bias.double() + residual.double()
            assert torch.equal(got.double(), want)
    many = fastgemm.gemm(a[:, None], b[None], bias=bias[0, 0], activation="relu")  # 3 x 3 products
    want = torch.relu(a[:, None].double() @ b[None].double() + bias[0, 0].double())
    assert torch.equal(many, want.to(BF16))


def test_vectors_as_operands_of_the_product():
    a, b = operands(5, 48, 64, "nt", HALF)
    bias = vector(48, HALF, 3)
    got = fastgemm.gemm(a[0], b, bias=bias, out_dtype=FLOAT)
    assert torch.equal(got.double(), a[0].double() @ b.double() + bias.double())
    got = fastgemm.gemm(a, b[:, 0], scale_a=torch.arange(5.0, device="cuda"), out_dtype=FLOAT)
    assert torch.equal(
        got.double(), (a.double() @ b[:, 0].double()) * torch.arange(5.0, device="cuda").double()
    )


def test_c_is_added_before_the_activation_and_not_read_where_beta_is_0():
    a, b = operands(72, 56, 64, "nt", HALF)
    c = integers(72, 56, dtype=HALF, seed=9)
    exact = a.double() @ b.double()
    got = fastgemm.gemm(a, b, c=c, alpha=0.5, beta=2.0, activation="relu", out_dtype=FLOAT)
    assert torch.equal(got.double(), torch.relu(0.5 * exact + 2 * c.double()))
    nan = torch.full_like(c, float("nan"))
    got = fastgemm.gemm(a, b, c=nan, beta=0.0, activation="relu", out_dtype=FLOAT)
    assert torch.equal(got.double(), torch.relu(exact))


def test_expressions():
    m, n = 136, 208
    a, b = operands(m, n, 96, "nt", BF16)
    a = a / 4
    acc = a.double() @ b.double()
    s, t, r = vector(m, FLOAT, 1), vector(n, BF16, 2), integers(m, n, dtype=HALF, seed=3)
    single = torch.tensor([0.5], device="cuda")
    values = {"s": s, "t": t, "r": r, "u": single, "w": -0.125}
    x, y, z = s[:, None].double(), t.double(), r.double()
    for text, want in (
        ("acc", acc),
        ("gelu(acc * s[m] + t[n]) + r[m, n]", functional.gelu(acc * x + y) + z),
        ("where(acc > 0, acc, w * acc) * u", torch.where(acc > 0, acc, -0.125 * acc) * 0.5),
        ("max(min(acc, 2), -1) / (1 + abs(t[n]))", acc.clamp(-1, 2) / (1 + y.abs())),
        (
            "where(r[m, n] >= 1 and not s[m] < 0 or t[n] != t[n], tanh(acc), 0)",
            torch.where((z >= 1) & ~(x < 0), torch.tanh(acc), 0.0),
        ),
    ):
        used = {name: value for name, value in values.items() if re.search(rf"\b{name}\b", text)}
        for config in (None, GemmConfig(split_k=2), GemmConfig(family="sm80")):
            out = Guarded(m, n, BF16)
            fastgemm.gemm(a, b, out=out.out, epilogue=Epilogue(text, **used), config=config)
            out.check_close(want, 1e-4, f"{text} {config}")


def test_device_code():
    a, b = operands(64, 64, 64, "nt", HALF)
    code = "FASTGEMM_DEVICE float leaky(float x, float slope) { return x > 0 ? x : slope * x; }"
    got = fastgemm.gemm(
        a, b, epilogue=Epilogue("leaky(acc, slope)", slope=0.5, device_code=code), out_dtype=FLOAT
    )
    exact = a.double() @ b.double()
    assert torch.equal(got.double(), torch.where(exact > 0, exact, 0.5 * exact))


def test_other_numbers_and_other_memory_compile_nothing():
    a, b = operands(64, 64, 64, "nt", HALF)
    exact = a.double() @ b.double()
    fastgemm.gemm(a, b, epilogue=Epilogue("acc * x + y[n]", x=1.0, y=vector(64, HALF, 1)))
    before = fastgemm.cache_info()
    for i in range(5):
        y = vector(64, HALF, i)
        got = fastgemm.gemm(a, b, epilogue=Epilogue("acc * x + y[n]", x=float(i), y=y))
        assert torch.equal(got, (exact * i + y.double()).to(HALF))
    after = fastgemm.cache_info()
    assert (after.misses, after.compiles) == (before.misses, before.compiles)


def test_nan_and_infinities_pass_as_in_the_reference():
    a = torch.eye(64, device="cuda", dtype=HALF)
    b = torch.zeros(64, 64, device="cuda", dtype=HALF)
    bias = torch.zeros(64, device="cuda")
    bias[:4] = torch.tensor([float("nan"), float("inf"), float("-inf"), 1.0])
    for name, function in ACTIVATIONS.items():
        for config in (None, GemmConfig(family="sm80")):
            got = fastgemm.gemm(
                a, b, bias=bias, activation=name, out_dtype=FLOAT, config=config
            ).double()
            want = function(bias.double()).expand(64, 64)
            assert torch.allclose(got, want, rtol=1e-5, atol=1e-6, equal_nan=True), name


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
                              out=out.out, config=config)  # fmt: skip
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


def test_captured_and_prepared():
    a, b = operands(128, 256, 128, "nt", BF16)
    bias, residual = vector(256, BF16, 1), integers(128, 256, dtype=BF16, seed=2)
    out = torch.empty(128, 256, device="cuda", dtype=BF16)

    def call():
        fastgemm.gemm(a, b, bias=bias, residual=residual, activation="relu", out=out)

    def want():
        acc = a.double() @ b.double() + bias.double() + residual.double()
        return torch.relu(acc).to(BF16)

    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    bias += 1
    residual -= 2
    graph.replay()
    assert torch.equal(out, want())
    prepared = fastgemm.prepare(a, b, bias=bias, residual=residual, activation="relu")
    assert torch.equal(prepared(), want())
    bias = bias + 3
    prepared.rebind(bias=bias)
    assert torch.equal(prepared(), want())


def test_same_inputs_same_bits():
    a, b = operands(256, 512, 1024, "nt", BF16)
    bias = torch.randn(512, device="cuda")
    for config in (None, GemmConfig(split_k=4)):
        calls = [
            fastgemm.gemm(a, b, bias=bias, activation="gelu", config=config) for _ in range(3)
        ]
        assert torch.equal(calls[0], calls[1])
        assert torch.equal(calls[0], calls[2])
