"""Arrays of every framework reach the kernel as they lie in memory, never copied.

Needs no GPU: the described problems are computed with NumPy, through the same pointers and strides.
"""

import gc
import resource
import sys

import ml_dtypes
import numpy as np
import pytest
from described import integers, run
from fastgemm import _core

BF16 = ml_dtypes.bfloat16


def from_numpy(array, framework):
    """`array` in another framework, with the same strides where the framework can have them."""
    if framework == "numpy":
        return array
    if framework == "jax":
        return pytest.importorskip("jax.numpy").asarray(array)
    torch = pytest.importorskip("torch")
    if array.dtype == BF16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


FRAMEWORKS = ["numpy", "torch", "jax"]
SHAPES = [
    ((2, 3), (3, 4)),
    ((1, 1), (1, 1)),
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((2, 5, 2, 3), (2, 5, 3, 4)),
    ((2, 1, 2, 3), (1, 5, 3, 4)),
    ((2, 1, 7, 2, 3), (5, 1, 3, 4)),
    ((2, 0, 3), (3, 4)),
    ((0, 2, 3), (1, 3, 4)),
    ((2, 0), (0, 4)),
    ((0,), (0,)),
]


@pytest.mark.parametrize(("a_shape", "b_shape"), SHAPES)
def test_shapes_are_those_of_numpy_matmul(a_shape, b_shape):
    a, b = integers(a_shape), integers(b_shape, seed=1)
    expected = np.matmul(a, b)
    call = _core._describe_call(a, b)
    assert call["shape"] == np.shape(expected)
    out = np.full(np.shape(expected), np.nan, np.float16)
    run(a, b, out=out)
    np.testing.assert_array_equal(out, expected)


def test_batches_are_one_problem_where_one_stride_walks_them():
    def batches(a_shape, b_shape):
        problems = _core._describe_call(integers(a_shape), integers(b_shape))["problems"]
        return [p["batch_m_n_k"][0] for p in problems]

    assert batches((2, 5, 2, 3), (2, 5, 3, 4)) == [10]
    assert batches((2, 5, 2, 3), (3, 4)) == [10]
    assert batches((70000, 1, 2), (2, 1)) == [70000]
    assert batches((2, 1, 2, 3), (1, 5, 3, 4)) == [5, 5]
    assert batches((6, 1, 2, 3), (1, 5, 3, 4)) == [6] * 5


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[:, :16],
        lambda x: x[::2, 4:20],
        lambda x: x.T[4:20],
        lambda x: x[:1, :16],
        lambda x: x[:, 3:4],
        lambda x: x[1:, 1::3],
    ],
)
def test_views_are_read_in_place(framework, dtype, view):
    base = from_numpy(integers((8, 24), dtype), framework)
    a = view(base)
    copy = view(integers((8, 24), dtype))
    b = from_numpy(integers((copy.shape[1], 5), dtype, seed=1), framework)
    out = np.full((copy.shape[0], 5), np.nan, dtype)
    run(a, b, out=out)
    expected = copy.astype(np.float64) @ np.asarray(
        integers((copy.shape[1], 5), dtype, seed=1), float
    )
    np.testing.assert_array_equal(out.astype(np.float64), expected)


@pytest.mark.parametrize("flip", [np.s_[::-1], np.s_[:, ::-1], np.s_[::-1, ::-1], np.s_[::-2, ::3]])
def test_negative_strides_are_read_in_place(flip):
    a, b = integers((9, 9))[flip], integers((9, 9), seed=1)[flip]
    if a.shape[1] != b.shape[0]:
        b = b.T
    out = np.full((a.shape[0], b.shape[1]), np.nan, np.float16)
    call = run(a, b, out=out)
    assert call["problems"][0]["a"]["data"] == a.ctypes.data
    np.testing.assert_array_equal(out, a @ b)


def test_no_operand_is_copied():
    torch = pytest.importorskip("torch")
    a, b, out = torch.ones(4, 8).half(), torch.ones(3, 8).half().T, torch.empty(3, 4).half().T
    problem = _core._describe_call(a, b, out=out)["problems"][0]
    assert [problem[x]["data"] for x in "abd"] == [x.data_ptr() for x in (a, b, out)]
    assert [problem[x]["strides"] for x in "abd"] == [(0, 8, 1), (0, 1, 8), (0, 1, 4)]


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize("a_framework", FRAMEWORKS)
@pytest.mark.parametrize("b_framework", FRAMEWORKS)
def test_host_frameworks_mix(a_framework, b_framework, dtype):
    a, b = integers((8, 16), dtype), integers((16, 4), dtype, seed=1)
    out = np.zeros((8, 4), np.float32)
    call = run(from_numpy(a, a_framework), from_numpy(b, b_framework), out=out)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32))
    assert call["framework"] == a_framework
    assert call["out_dtype"] == "float32"


def test_read_only_and_broadcast_inputs_are_fine():
    a = integers((4, 4))
    a.flags.writeable = False
    b = np.broadcast_to(integers((4,)), (4, 4))
    c = np.broadcast_to(integers((1, 4)), (4, 4))
    out = np.full((4, 4), np.nan, np.float16)
    run(a, b, c=c, out=out)
    np.testing.assert_array_equal(out, a @ b + c)


@pytest.mark.parametrize("c_shape", [(5, 2, 4), (2, 4), (4,), (1, 4), (2, 1), (5, 1, 1), (1,), ()])
def test_c_broadcasts_to_the_result(c_shape):
    a, b, c = integers((5, 2, 3)), integers((5, 3, 4), seed=1), integers(c_shape, seed=2)
    out = np.full((5, 2, 4), np.nan, np.float16)
    run(a, b, c=c, alpha=2, beta=-0.5, out=out)
    np.testing.assert_array_equal(out, 2 * (a @ b) - 0.5 * c)


@pytest.mark.parametrize(
    ("a_shape", "b_shape", "c_shape"), [((3,), (3, 4), (4,)), ((5, 2, 3), (3,), (5, 1))]
)
def test_c_broadcasts_where_a_vector_lacks_a_dimension(a_shape, b_shape, c_shape):
    a, b, c = integers(a_shape), integers(b_shape, seed=1), integers(c_shape, seed=2)
    expected = a @ b + c
    out = np.full(expected.shape, np.nan, np.float16)
    run(a, b, c=c, out=out)
    np.testing.assert_array_equal(out, expected)


def test_out_may_be_c_and_have_any_strides():
    a, b = integers((2, 1, 4, 3)), integers((1, 3, 3, 5), seed=1)
    out = integers((2, 5, 3, 4), seed=2).transpose(0, 2, 3, 1)
    expected = a @ b + out
    run(a, b, c=out, out=out)
    np.testing.assert_array_equal(out, expected)


def test_beta_is_1_with_c_and_0_without():
    a = integers((2, 2))
    assert _core._describe_call(a, a)["problems"][0]["beta"] == 0
    assert _core._describe_call(a, a, c=a)["problems"][0]["beta"] == 1
    assert _core._describe_call(a, a, c=a, beta=0)["problems"][0]["beta"] == 0


@pytest.mark.parametrize(
    "dtype",
    ["float32", "fp32", np.float32, np.dtype("float32"), "torch.float32", "jax.numpy.float32"],
)
def test_out_dtype_by_name_or_as_any_framework_has_it(dtype):
    if isinstance(dtype, str) and "." in dtype:
        module, name = dtype.rsplit(".", 1)
        dtype = getattr(pytest.importorskip(module), name)
    a = integers((2, 2))
    assert _core._describe_call(a, a, out_dtype=dtype)["out_dtype"] == "float32"


def test_parameters_are_read_where_nothing_is_recorded():
    torch = pytest.importorskip("torch")
    weight = torch.nn.Linear(16, 8).half().weight
    x = torch.ones(4, 16, dtype=torch.float16)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            problem = _core._describe_call(x, weight.T)["problems"][0]
            assert problem["b"]["data"] == weight.data_ptr()
            assert _core._describe_call(x, x.T, out=torch.empty(4, 4).half())["shape"] == (4, 4)


def test_a_plain_subclass_of_tensor_is_read():
    torch = pytest.importorskip("torch")

    class Named(torch.Tensor):
        pass

    x = torch.ones(4, 4, dtype=torch.float16)
    problem = _core._describe_call(x.as_subclass(Named), x)["problems"][0]
    assert problem["a"]["data"] == x.data_ptr()


@pytest.mark.parametrize("dtype", [np.float16, BF16])
def test_cupy_arrays_are_read_without_a_question_to_the_driver(dtype):
    cupy = pytest.importorskip("cupy")
    memory = cupy.cuda.UnownedMemory(0x10000, 4096, None, device_id=3)
    pointer = cupy.cuda.MemoryPointer(memory, 64)
    a = cupy.ndarray((8, 16), dtype, memptr=pointer, strides=(2, 16))
    b = cupy.ndarray((16, 4), dtype, memptr=pointer)
    call = _core._describe_call(a, b, stream=5)
    problem = call["problems"][0]
    assert (call["framework"], call["device"], call["waits"]) == ("cupy", "cuda:3", False)
    assert problem["a"] == {
        "data": 0x10040,
        "dtype": np.dtype(dtype).name,
        "strides": (0, 1, 8),
    }
    assert problem["b"]["strides"] == (0, 4, 1)


def test_any_type_with_the_exchange_api_is_read():
    tvm_ffi = pytest.importorskip("tvm_ffi")
    x = np.ascontiguousarray(integers((4, 6)))
    tensor = tvm_ffi.from_dlpack(x)
    call = _core._describe_call(tensor, x.T)
    assert call["problems"][0]["a"] == {
        "data": x.ctypes.data,
        "dtype": "float16",
        "strides": (0, 6, 1),
    }
    assert call["framework"] == "other"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_conversions_leave_nothing_behind(framework):
    a = from_numpy(integers((4, 4)), framework)
    out = integers((4, 4))

    def calls(count):
        for _ in range(count):
            _core._describe_call(a, a, c=out, out=out)
        gc.collect()

    calls(1000)
    gc.collect()
    references = sys.getrefcount(a), sys.getrefcount(out), sys.getrefcount(None)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    calls(20_000)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert (sys.getrefcount(a), sys.getrefcount(out)) == references[:2]
    assert abs(sys.getrefcount(None) - references[2]) < 100
    assert grown_kib < 1024


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_refused_calls_leave_nothing_behind(framework):
    a = from_numpy(integers((4, 4)), framework)
    references = sys.getrefcount(a)
    for _ in range(1000):
        with pytest.raises(ValueError, match="matrix product"):
            _core._describe_call(a, integers((3, 4)))
        with pytest.raises(TypeError, match="not an array"):
            _core._describe_call(a, None)
    gc.collect()
    assert sys.getrefcount(a) == references
