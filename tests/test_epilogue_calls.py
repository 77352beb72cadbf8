"""What is fused is read from the call and placed along the right axis, or refused in words."""

import fastgemm
import numpy as np
import pytest
from described import integers
from dlpack_stub import CUDA, Producer
from fake_gpu import on_fake_gpu, on_gpu
from fastgemm import Epilogue, _core

describe = _core._describe_call
a, b = integers((64, 32)), integers((32, 64), seed=1)  # a square result


def fused(*operands, **arguments):
    """Expression and values that a call becomes: arrays as their strides, numbers as they are."""
    (problem,) = describe(*(operands or (a, b)), **arguments)["problems"]
    expression, values = problem["epilogue"]
    return expression, {
        name: value["strides"] if isinstance(value, dict) else value
        for name, value in values.items()
    }


def vector(n, dtype=np.float32):
    return np.zeros(n, dtype)


@pytest.mark.parametrize(
    ("arguments", "expression", "values"),
    [
        ({"bias": vector(64)}, "acc + bias[n]", {"bias": (0, 0, 1)}),
        ({"bias": vector((1, 64))}, "acc + bias[n]", {"bias": (0, 0, 1)}),
        ({"bias": vector((64, 1))}, "acc + bias[m]", {"bias": (0, 1, 0)}),
        ({"bias": vector(128)[::2]}, "acc + bias[n]", {"bias": (0, 0, 2)}),
        ({"activation": "gelu"}, "gelu(acc)", {}),
        ({"scale_a": 2, "scale_b": 0.5}, "acc * scale_a * scale_b", {"scale_a": 2, "scale_b": 0.5}),
        ({"scale_a": np.float32(3)}, "acc * scale_a", {"scale_a": 3}),
        ({"scale_a": vector(64)}, "acc * scale_a[m]", {"scale_a": (0, 1, 0)}),
        ({"scale_a": vector((64, 1))}, "acc * scale_a[m]", {"scale_a": (0, 1, 0)}),
        ({"scale_b": vector(64)}, "acc * scale_b[n]", {"scale_b": (0, 0, 1)}),
        ({"scale_b": vector((1, 1))}, "acc * scale_b", {"scale_b": (0, 0, 0)}),
        ({"scale_b": vector(())}, "acc * scale_b", {"scale_b": (0, 0, 0)}),
        ({"residual": vector((64, 64))}, "acc + residual[m, n]", {"residual": (0, 64, 1)}),
        ({"residual": vector((1, 64))}, "acc + residual[m, n]", {"residual": (0, 0, 1)}),
        (
            {"c": vector((64, 64)), "beta": 0.5, "activation": "relu"},
            "relu(acc + beta * c[m, n])",
            {"c": (0, 64, 1), "beta": 0.5},
        ),
        ({"c": vector((64, 64)), "beta": 0, "activation": "relu"}, "relu(acc)", {}),
        ({"out_scale": 2.0, "out_dtype": "int8"}, "acc * (1 / out_scale)", {"out_scale": 2.0}),
        ({"out_scale": vector(64)}, "acc * (1 / out_scale[n])", {"out_scale": (0, 0, 1)}),
        ({"out_scale": vector((64, 1))}, "acc * (1 / out_scale[m])", {"out_scale": (0, 1, 0)}),
        ({"bias": vector(64), "out_scale": vector(1)}, "(acc + bias[n]) * (1 / out_scale)",
         {"bias": (0, 0, 1), "out_scale": (0, 0, 0)}),
        (
            {"activation": "gelu", "keep": vector((64, 64)), "amax": vector(1), "out_scale": 2.0,
             "out_dtype": "float8_e4m3fn"},
            "amax(gelu(keep(acc))) * (1 / out_scale)",
            {"keep": (0, 64, 1), "amax": (0, 0, 0), "out_scale": 2.0},
        ),
        (
            {
                "activation": "silu",
                "residual": vector((64, 64), np.float16),
                "bias": vector(64, np.float16),
                "scale_b": vector(64),
                "scale_a": vector(1),
            },
            "silu(acc * scale_a * scale_b[n] + bias[n] + residual[m, n])",
            {
                "scale_a": (0, 0, 0),
                "scale_b": (0, 0, 1),
                "bias": (0, 0, 1),
                "residual": (0, 64, 1),
            },
        ),
    ],
)
def test_named_parts_become_an_expression(arguments, expression, values):
    assert fused(**arguments) == (expression, values)


@pytest.mark.parametrize("order", ["interleaved", "blocked"])
def test_gated_results_have_half_of_the_columns(order):
    call = describe(a, b, activation="silu", gated=order, bias=vector(64), scale_a=vector(64))
    assert call["shape"] == (64, 32)
    (problem,) = call["problems"]
    assert problem["batch_m_n_k"] == (1, 64, 64, 32)
    assert problem["d"]["strides"] == (0, 32, 1)
    expression = "silu(gate * scale_a[m] + bias[gate]) * (up * scale_a[m] + bias[up])"
    assert problem["epilogue"][0] == expression
    epilogue = Epilogue("silu(gate) * up * x[n]", gated=order, x=vector(32))
    assert describe(a, b, epilogue=epilogue)["shape"] == (64, 32)
    batched = describe(integers((2, 3, 8, 16)), integers((16, 8)), activation="gelu", gated=order)
    assert batched["shape"] == (2, 3, 8, 4)
    assert describe(a[0], b, activation="silu", gated=order)["shape"] == (32,)


def test_batches_have_vectors_of_their_own_or_share_one():
    x, y = integers((3, 8, 32)), integers((3, 32, 16))
    assert fused(x, y, bias=vector(16))[1] == {"bias": (0, 0, 1)}
    assert fused(x, y, bias=vector((3, 1, 16)))[1] == {"bias": (16, 0, 1)}
    assert fused(x, y, scale_a=vector((3, 8, 1)))[1] == {"scale_a": (8, 1, 0)}
    assert fused(x, y, scale_a=vector((1, 8, 1)))[1] == {"scale_a": (0, 1, 0)}
    assert fused(x, y, residual=vector((3, 1, 16)))[1] == {"residual": (16, 0, 1)}
    problems = describe(x[:, None], y[None], bias=vector((3, 1, 1, 16)))["problems"]
    starts = [p["epilogue"][1]["bias"]["data"] for p in problems]
    strides = {p["epilogue"][1]["bias"]["strides"] for p in problems}
    assert len(problems) == 3
    assert (strides, {j - i for i, j in zip(starts, starts[1:], strict=False)}) in (
        ({(0, 0, 1)}, {64}),
        ({(16, 0, 1)}, {0}),
    )


def test_vectors_as_operands_lack_an_axis():
    assert fused(a[0], b, bias=vector(64))[1] == {"bias": (0, 0, 1)}
    assert fused(a, b[:, 0], scale_a=vector(64))[1] == {"scale_a": (0, 1, 0)}
    assert fused(a[0], b, residual=vector(64))[1] == {"residual": (0, 0, 1)}


@pytest.mark.parametrize(
    ("error", "arguments", "message"),
    [
        (ValueError, {"bias": vector(63)}, r"bias has shape \(63,\).* \(64,\) or \(..., 1, 64\)"),
        (ValueError, {"bias": vector(1)}, r"bias has shape \(1,\)"),
        (ValueError, {"bias": vector((64, 64))}, r"bias has shape \(64, 64\).*residual="),
        (ValueError, {"bias": vector((2, 1, 64))}, r"bias has shape \(2, 1, 64\)"),
        (ValueError, {"bias": vector(())}, r"bias has shape \(\)"),
        (ValueError, {"scale_a": vector(63)}, r"scale_a has shape \(63,\).*64 rows"),
        (ValueError, {"scale_a": vector((1, 64))}, r"scale_a has shape \(1, 64\).*64 rows"),
        (ValueError, {"scale_b": vector((64, 1))}, r"scale_b has shape \(64, 1\).*64 columns"),
        (ValueError, {"residual": vector((63, 64))}, r"residual has shape .*does not broadcast"),
        (ValueError, {"activation": "swish"}, "unknown activation 'swish'; there are relu, gelu"),
        (TypeError, {"activation": 3}, "activation is a int"),
        (TypeError, {"activation": len}, "activation is a builtin_function"),
        (TypeError, {"bias": 3}, "bias is a int, not an array"),
        (TypeError, {"bias": vector(64, np.int32)}, "bias .* has dtype int32"),
        (TypeError, {"residual": vector((64, 64), np.float64)}, "residual .* has dtype float64"),
        (TypeError, {"scale_a": "1"}, "scale_a is a str"),
        (ValueError, {"keep": vector(64)}, r"keep has shape \(64,\), but the product has shape"),
        (ValueError, {"keep": vector((1, 64))}, r"keep has shape \(1, 64\), but the product"),
        (ValueError, {"keep": np.broadcast_to(vector(64), (64, 64))}, "keep is read-only"),
        (ValueError, {"amax": vector(2)}, r"amax has shape \(2,\).*needs one element"),
        (ValueError, {"out_scale": vector(63)}, r"out_scale has shape \(63,\)"),
        (TypeError, {"c": a @ b, "out_dtype": "int8"}, "unsupported dtypes: .* result int8"),
        (ValueError, {"gated": "both", "activation": "silu"}, "gated is 'both'; it is"),
        (ValueError, {"gated": True, "activation": "silu"}, "gated is a bool; it is"),
        (ValueError, {"gated": "blocked"}, "a gated epilogue needs an activation"),
        (
            ValueError,
            {"gated": "blocked", "activation": "silu", "bias": vector(32)},
            r"bias has shape \(32,\); the gates and ups .* 64 columns",
        ),
        (
            ValueError,
            {"gated": "blocked", "activation": "silu", "residual": vector((64, 32))},
            "write what is meant as an expression of gate and up",
        ),
        (
            ValueError,
            {"gated": "blocked", "activation": "silu", "out": np.zeros((64, 64), np.float16)},
            r"out has shape \(64, 64\), but the product has shape \(64, 32\)",
        ),
        (TypeError, {"epilogue": "acc"}, "epilogue is a str, not a fastgemm.Epilogue"),
        (ValueError, {"epilogue": Epilogue("acc"), "bias": vector(64)}, "in the expression"),
        (ValueError, {"epilogue": Epilogue("acc"), "activation": "relu"}, "in the expression"),
        (ValueError, {"epilogue": Epilogue("acc + x[n]", x=vector(65))}, r"x has shape \(65,\)"),
        (ValueError, {"epilogue": Epilogue("acc + x", x=vector(64))}, "needs one element"),
    ],
)
def test_what_cannot_be_fused_is_refused(error, arguments, message):
    with pytest.raises(error, match=message):
        describe(a, b, **arguments)


def test_fused_arrays_elsewhere_are_refused():
    with pytest.raises(ValueError, match="operands in different places: .*bias .* on cuda:1"):
        describe(a, b, bias=Producer((64,), device=(CUDA, 1)))


def test_an_out_that_overlaps_what_is_fused_is_refused():
    memory = np.zeros((65, 64), np.float16)
    with pytest.raises(ValueError, match="D overlaps residual"):
        fastgemm.gemm(a, b, residual=memory[1:], out=memory[:64])
    with pytest.raises(ValueError, match="D overlaps bias"):
        fastgemm.gemm(a, b, bias=memory[0], out=memory[:64])
    with pytest.raises(ValueError, match="D overlaps keep"):
        fastgemm.gemm(a, b, keep=memory[:64], out=memory[:64])
    with pytest.raises(ValueError, match="keep overlaps residual"):
        fastgemm.gemm(a, b, keep=memory[:64], residual=memory[:64])
    with pytest.raises(TypeError, match="amax is float16; it has to be one float32"):
        fastgemm.gemm(a, b, amax=memory[0, :1])
    x, y = integers((2, 1, 8, 32)), integers((1, 3, 32, 16))
    out = np.zeros((2, 3, 8, 16), np.float16)
    with pytest.raises(ValueError, match="out overlaps bias"):
        describe(x, y, bias=out[0, 0, 0], out=out)
    assert describe(x, y, residual=out, out=out)["problems"]


class TestEpilogue:
    def test_errors_point_at_the_column(self):
        with pytest.raises(ValueError) as refused:
            Epilogue("gelu(acc * scal[m)", scale=vector(64))
        first, shown, arrow = str(refused.value).split("\n")
        assert first.startswith("epilogue, column 17: expected the index of scal")
        assert (shown.index("m"), arrow.index("^")) == (18, 18)

    @pytest.mark.parametrize(
        ("expression", "values", "message"),
        [
            ("acc + x[n]", {}, "uses 'x'; pass it by that name"),
            ("acc + x", {}, "uses 'x'; pass it by that name"),
            ("acc", {"x": 1}, "'x' is given, but the epilogue 'acc' does not use it"),
            ("acc + x[n]", {"x": 1}, "indexes 'x', which is a number"),
            ("sin(acc)", {}, "unknown function 'sin'"),
            ("gate * up", {}, "is gated: say how"),
            ("acc", {"gated": "blocked"}, "uses neither gate nor up"),
        ],
    )
    def test_names_have_to_match(self, expression, values, message):
        with pytest.raises(ValueError, match=message):
            Epilogue(expression, **values)

    def test_shows_its_expression(self):
        epilogue = Epilogue("acc * x", x=2)
        assert epilogue.expression == "acc * x"
        assert repr(epilogue) == "<fastgemm.Epilogue acc * x>"

    def test_values_of_every_kind(self):
        values = {"s": vector(64), "t": vector(64), "u": vector((64, 64)), "v": vector(1), "w": 3}
        expression, read = fused(
            epilogue=Epilogue("acc * s[m] + t[n] + u[m, n] * v - w", **values)
        )
        assert read == {
            "s": (0, 1, 0),
            "t": (0, 0, 1),
            "u": (0, 64, 1),
            "v": (0, 0, 0),
            "w": 3,
        }

    def test_keeps_its_arrays(self):
        epilogue = Epilogue("acc + x[n]", x=np.full(64, 7, np.float32))
        (problem,) = describe(a, b, epilogue=epilogue)["problems"]
        address = problem["epilogue"][1]["x"]["data"]
        import ctypes

        assert ctypes.c_float.from_address(address).value == 7


def test_plans_of_expressions_need_no_operands():
    plan = fastgemm.plan(256, 256, 256, arch="sm_90", epilogue="relu(acc * x + bias[n])")
    assert "relu(acc * x + bias[n])" in str(plan)
    source = fastgemm.compile(plan).source
    assert "math::relu(acc[i] * x_ + bias_[i])" in source
    with pytest.raises(ValueError, match="column 5"):
        fastgemm.plan(64, 64, 64, epilogue="acc ! 1")
    with pytest.raises(TypeError, match="not an expression or a fastgemm.Epilogue"):
        fastgemm.plan(64, 64, 64, epilogue=3)


@on_fake_gpu
def test_a_bias_is_launched_with_the_product(driver):
    x, y, bias = integers((8, 32)), integers((32, 16), seed=1), integers((16,), seed=2)
    d = np.zeros((8, 16), np.float16)
    prepared = fastgemm.prepare(
        on_gpu(x), on_gpu(y), bias=on_gpu(bias), out=on_gpu(d), stream=0x7000
    )
    prepared()
    np.testing.assert_array_equal(d, x @ y + bias)
    other = bias + 1
    prepared.rebind(bias=on_gpu(other))
    prepared()
    np.testing.assert_array_equal(d, x @ y + other)
    with pytest.raises(ValueError, match="rebind.. needs arrays"):
        prepared.rebind(bias=on_gpu(np.zeros((8, 1), np.float16)))
    assert (driver.launches, driver.loads) == (2, 1)
