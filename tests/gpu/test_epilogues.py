"""Fused epilogues on a real GPU: every form, family, dtype and order against float64."""

import re

import fastgemm
import pytest

torch = pytest.importorskip("torch")
from epilogue_cases import CONFIGS, on_hopper, vector  # noqa: E402
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


def test_a_known_product_with_its_arrays_elsewhere():
    """Decode swaps the operands, and then reads 16 bytes of factors of tokens at once, or not."""
    a, b = operands(16, 4096, 256, "nt", BF16)
    exact = a.double() @ b.double()
    store = integers(64, dtype=FLOAT, seed=2)
    for offset in (0, 1, 4, 3):
        scale = store[offset : offset + 16]
        got = fastgemm.gemm(a, b, scale_a=scale, out_dtype=FLOAT)
        assert torch.equal(got.double(), exact * scale.double()[:, None])


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
