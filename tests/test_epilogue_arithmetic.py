"""Epilogues compute what their expressions say: the struct that kernels get, run on the CPU."""

import ctypes
import math

import fastgemm
import ml_dtypes
import numpy as np
import pytest
from host_epilogue import DTYPES, compiled, finish

ACTIVATIONS = {
    "relu": lambda x: np.where(x < 0, 0.0, x),
    "gelu": lambda x: x * 0.5 * math.erfc(-x / math.sqrt(2)),
    "gelu_tanh": lambda x: (
        x * (0.5 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    ),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "tanh": math.tanh,
}
FUNCTIONS = {
    **ACTIVATIONS,
    "where": lambda condition, x, y: x if condition else y,
    **{name: getattr(math, name) for name in ("exp", "log", "sqrt")},
}


def source_of(epilogue, arch="sm_90", **options):
    plan = fastgemm.plan(512, 512, 512, arch=arch, epilogue=epilogue, **options)
    return fastgemm.compile(plan).source


class Indexed:
    """x[m], x[n], x[m, n] at one element."""

    def __init__(self, array):
        self.array = array

    def __getitem__(self, index):
        return float(self.array[index])


def reference(expression, acc, **values):
    """The expression in float64, element by element, as Python reads it."""
    code = compile(expression, "expression", "eval")
    names = {k: Indexed(v) if isinstance(v, np.ndarray) else v for k, v in values.items()}
    result = np.empty(acc.shape)
    for m in range(acc.shape[0]):
        for n in range(acc.shape[1]):
            result[m, n] = eval(code, FUNCTIONS, {**names, "acc": float(acc[m, n]), "m": m, "n": n})
    return result


def normal(shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(DTYPES[dtype])


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_accurate_to_float32(name, tmp_path):
    function = compiled(source_of(f"{name}(acc)"), tmp_path, 1).function_of
    xs = np.concatenate([np.linspace(-6, 6, 4001), np.geomspace(1e-30, 60, 500)])
    for x in np.concatenate([xs, -xs]).astype(np.float32):
        want = float(ACTIVATIONS[name](float(x)))
        # 2^x is known to 2^-24 of x: that is what far tails are worth.
        bound = abs(want) * (5e-6 + 3e-7 * min(abs(x), 40)) + (6e-9 if x < -6 else 1e-37)
        assert abs(function(x) - want) <= bound, f"{name}({x}) is {function(x)}, not {want}"


@pytest.mark.parametrize(
    ("name", "at_minus_inf", "at_inf"),
    [
        ("relu", 0.0, math.inf),
        ("gelu", math.nan, math.inf),
        ("gelu_tanh", math.nan, math.inf),
        ("silu", math.nan, math.inf),
        ("sigmoid", 0.0, 1.0),
        ("tanh", -1.0, 1.0),
    ],
)
def test_nan_stays_and_infinities_pass_as_in_the_definitions(name, at_minus_inf, at_inf, tmp_path):
    function = compiled(source_of(f"{name}(acc)"), tmp_path, 1).function_of
    assert math.isnan(function(math.nan))
    assert function(math.inf) == at_inf
    low = function(-math.inf)
    assert low == at_minus_inf or (math.isnan(low) and math.isnan(at_minus_inf))
    assert function(0.0) == (0.5 if name == "sigmoid" else 0.0)
    big = float(np.finfo(np.float32).max)
    assert function(big) == (1.0 if name in ("sigmoid", "tanh") else big)
    assert abs(function(-big)) == (1.0 if name == "tanh" else 0.0)


def test_nan_wins_in_min_and_max(tmp_path):
    for i, expression in enumerate(("min(acc, 1)", "max(1, acc)", "max(acc, acc)", "abs(acc)")):
        (tmp_path / str(i)).mkdir()
        function = compiled(source_of(expression), tmp_path / str(i), 1).function_of
        assert math.isnan(function(math.nan)), expression
        assert function(-3.0) == {0: -3.0, 1: 1.0, 2: -3.0, 3: 3.0}[i]


EXPRESSIONS = [
    ("acc + bias[n]", {"bias": "column"}),
    ("acc * scale[m]", {"scale": "row"}),
    (
        "gelu(acc * scale[m] + bias[n]) + residual[m, n]",
        {"scale": "row", "bias": "column", "residual": "element"},
    ),
    (
        "where(acc > 0 and x[m, n] <= 1 or acc < -2, acc, slope * acc) / (1 + abs(y[n]))",
        {"x": "element", "slope": 0.125, "y": "column"},
    ),
    ("min(max(acc, -1), 2) - -x[m] * 1.5e-1", {"x": "row"}),
    ("exp(-abs(acc)) + sqrt(abs(acc) + 1) * log(2 + abs(x[n])) * s", {"x": "column", "s": -0.5}),
    ("where(not acc == acc, 0, tanh(acc))", {}),
]


@pytest.mark.parametrize(("expression", "kinds"), EXPRESSIONS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_expressions_equal_what_python_makes_of_them(expression, kinds, dtype, tmp_path):
    """Aligned and not, several neighbours at once, from the middle of the result to its edges."""
    for rows, cols, offset, count in ((7, 48, 0, 8), (5, 37, 1, 2)):
        shapes = {"row": (rows,), "column": (cols,), "element": (rows, cols)}
        strides = {"row": (1, 0), "column": (0, 1), "element": (cols, 1)}
        values, placed, numbers = {}, [], []
        for i, (name, kind) in enumerate(kinds.items()):
            if not isinstance(kind, str):
                values[name] = kind
                numbers.append(kind)
                continue
            size = math.prod(shapes[kind])
            store = normal(size + offset + 16, dtype, seed=i)
            aligned = -store.ctypes.data // store.itemsize % (16 // store.itemsize)
            array = store[aligned + offset : aligned + offset + size]
            values[name] = array.reshape(shapes[kind])
            placed.append((array, strides[kind]))
        folder = tmp_path / f"{rows}"
        folder.mkdir(exist_ok=True)
        epilogue = fastgemm.Epilogue(expression, **values)
        source = source_of(epilogue, dtype="bfloat16" if dtype == "float32" else dtype)
        in_dtype = "Float16" if dtype == "float16" else "Bfloat16"
        device_type = {"float16": "Float16", "bfloat16": "Bfloat16", "float32": "Float32"}[dtype]
        source = source.replace(f"<{in_dtype}", f"<{device_type}")
        if offset or cols % 16:
            source = source.replace(", true>", ", false>")
        acc = normal((rows, cols), seed=9) * 2
        for first in ((0, 0), (2, 16)):
            got = finish(compiled(source, folder, count), acc, placed, numbers, first)
            want = acc.astype(np.float64)
            inside = np.s_[first[0] :, first[1] :]
            want[inside] = reference(expression, acc, **values)[inside]
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_keep_leaves_the_value_so_far_and_amax_the_largest(dtype, tmp_path):
    source = source_of("amax(relu(keep(acc + bias[n]))) * 2", dtype="bfloat16")
    source = source.replace("KeptElements<Bfloat16", f"KeptElements<{dtype.title()}")
    for rows, cols, pitch, count in ((7, 48, 48, 8), (5, 37, 39, 2)):
        acc, bias = normal((rows, cols), seed=1), normal(cols, "bfloat16", seed=2)
        kept = np.full((rows + 1, pitch), 7, DTYPES[dtype])
        amax = np.full(1, 0.5, np.float32)
        (tmp_path / f"{count}").mkdir()
        narrow = source if cols % 16 == 0 else source.replace(", true>", ", false>")
        library = compiled(narrow, tmp_path / f"{count}", count)
        got = finish(library, acc, [(bias, (0, 1)), (kept, (pitch, 1)), (amax, (0, 0))])
        so_far = acc + bias.astype(np.float32)
        np.testing.assert_array_equal(got, np.maximum(so_far, 0) * 2)
        np.testing.assert_array_equal(kept[:rows, :cols], so_far.astype(kept.dtype))
        assert (kept[rows] == 7).all()
        assert (kept[:, cols:] == 7).all()
        assert amax[0] == so_far.max()
        acc[2, 3] = np.nan
        finish(library, acc, [(bias, (0, 1)), (kept, (pitch, 1)), (amax, (0, 0))])
        assert np.isnan(amax[0])


def test_quantised_values_are_the_nearest_and_saturate(tmp_path):
    """All exponents, and every place where the nearest value changes, from both sides."""
    library = compiled(source_of("acc"), tmp_path, 1)
    special = [math.nan, math.inf, -math.inf, 0.0, -0.0, 127.5, -128.5, 1e30, 448, 464, 480, 61440]
    samples = [np.arange(0, 2**32, 9973, dtype=np.uint64).astype(np.uint32).view(np.float32)]
    for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        values = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
        values = np.sort(values[np.isfinite(values)])
        for at in (values, (values[1:] + values[:-1]) / 2):
            samples += [at, np.nextafter(at, np.float32(9e9)), np.nextafter(at, np.float32(-9e9))]
    x = np.concatenate([*samples, np.array(special, np.float32)])
    nan = np.isnan(x)

    def quantise(kind):
        y = np.empty(x.size, np.uint8)
        library.quantise(x.ctypes.data_as(ctypes.c_void_p), y.ctypes.data_as(ctypes.c_void_p),
                         x.size, kind)  # fmt: skip
        return y

    whole = np.clip(np.rint(np.where(nan, 0, x).astype(np.float64)), -128, 127)
    np.testing.assert_array_equal(quantise(0).view(np.int8), whole)
    for kind, dtype, most in (
        (1, ml_dtypes.float8_e4m3fn, 448),
        (2, ml_dtypes.float8_e5m2, 57344),
    ):
        got = quantise(kind)
        want = np.clip(x[~nan], -most, most).astype(dtype).view(np.uint8)
        np.testing.assert_array_equal(got[~nan], want)
        assert set(got[nan]) <= {0x7F, 0xFF}
