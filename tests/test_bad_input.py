"""What cannot be computed is refused with words that help, and leaves nothing behind."""

import fastgemm
import ml_dtypes
import numpy as np
import pytest
from described import integers
from dlpack_stub import CUDA, Producer
from fastgemm import _core

describe = _core._describe_call
x = integers((4, 4))
TABLE = "supported are a and b of float16 or bfloat16, both the same, with c and out of that dtype"


@pytest.mark.parametrize(
    ("a_shape", "b_shape"),
    [
        ((2, 5), (3, 7)),
        ((5, 3, 1), (3, 1, 4)),
        ((), ()),
        ((), (4, 4)),
        ((4, 4), ()),
        ((4,), (3,)),
        ((4,), (3, 4)),
        ((2, 3), (2,)),
        ((2, 2, 2), (3, 2, 2)),
        ((0,), (1,)),
    ],
)
def test_shapes_that_numpy_refuses_are_refused_with_both_named(a_shape, b_shape):
    a, b = np.zeros(a_shape, np.float16), np.zeros(b_shape, np.float16)
    with pytest.raises(ValueError):
        np.matmul(a, b)
    with pytest.raises(ValueError) as refused:
        fastgemm.gemm(a, b)
    assert str(a_shape) in str(refused.value)
    assert str(b_shape) in str(refused.value)


@pytest.mark.parametrize("role", ["a", "b", "c", "out"])
@pytest.mark.parametrize(
    "dtype",
    [
        ">f2",
        "int32",
        "int64",
        "bool",
        "complex64",
        "float64",
        "object",
        "S2",
        "V2",
        [("x", "f2")],
        "M8[ns]",
        ml_dtypes.float8_e4m3fn,
    ],
)
def test_dtypes_outside_the_table_are_refused(role, dtype):
    if role == "out" and dtype is ml_dtypes.float8_e4m3fn:
        return
    operands = {"a": x, "b": x, role: np.zeros((4, 4), dtype)}
    with pytest.raises(TypeError, match=rf"^{role} \(numpy.ndarray\) has dtype .*{TABLE}"):
        fastgemm.gemm(**operands)


@pytest.mark.parametrize(
    ("names", "arguments"),
    [
        (["float16", "bfloat16", "float16"], {}),
        (["float32", "float32"], {}),
        (["float16", "float32"], {}),
        (["float16", "float16", "float32"], {}),
        (["float16", "float16", "float16"], {"out_dtype": "float32"}),
        (["float16", "float16"], {"out_dtype": "bfloat16"}),
        (["bfloat16", "bfloat16"], {"out_dtype": "float16"}),
    ],
)
def test_mixed_dtypes_are_refused(names, arguments):
    operands = dict(zip("abc", (x.astype(name) for name in names), strict=False))
    with pytest.raises(TypeError, match=TABLE) as refused:
        fastgemm.gemm(**operands, **arguments)
    for role, name in zip("abc", names, strict=False):
        assert f"{role} {name}" in str(refused.value)


def test_out_of_another_dtype_than_out_dtype_is_refused():
    with pytest.raises(TypeError, match="out float16, out_dtype float32"):
        fastgemm.gemm(x, x, out=x.copy(), out_dtype="float32")


@pytest.mark.parametrize("out_dtype", ["float8", "int16", np.int32, 5, object()])
def test_unknown_out_dtypes_are_refused(out_dtype):
    with pytest.raises(TypeError):
        fastgemm.gemm(x, x, out_dtype=out_dtype)


@pytest.mark.parametrize("thing", [[[1.0]], None, 3, "a", np.float16(3), object()])
@pytest.mark.parametrize("role", ["a", "b", "c", "out"])
def test_what_is_no_array_is_refused(role, thing):
    if role in ("c", "out") and thing is None:
        return
    with pytest.raises(TypeError, match=f"{role} is a .*, not an array: expected one of NumPy"):
        fastgemm.gemm(**{"a": x, "b": x, role: thing})


@pytest.mark.parametrize(
    "shape", [(4, 5), (5, 4), (4,), (1, 4, 4), (1, 1), (4, 4, 1), (), (0, 4), (2, 8)]
)
def test_out_must_have_the_very_shape(shape):
    out = np.full(shape, 7, np.float16)
    with pytest.raises(ValueError, match=r"out has shape .* but the product has shape \(4, 4\)"):
        fastgemm.gemm(x, x, out=out)
    assert (out == 7).all()


@pytest.mark.parametrize("shape", [(4, 5), (5, 4), (3,), (2, 4, 4), (2, 1)])
def test_c_must_broadcast(shape):
    with pytest.raises(ValueError, match=r"c has shape .* does not broadcast to \(4, 4\)"):
        fastgemm.gemm(x, x, c=np.zeros(shape, np.float16))


def test_read_only_out_is_refused():
    out = x.copy()
    out.flags.writeable = False
    for refused in (out, np.broadcast_to(x[0], (4, 4))):
        with pytest.raises(ValueError, match="out is read-only"):
            fastgemm.gemm(x, x, out=refused)


def test_out_in_jax_is_refused_and_unchanged():
    jnp = pytest.importorskip("jax.numpy")
    out = jnp.full((4, 4), 7, jnp.float16)
    with pytest.raises(TypeError, match="out is a JAX array, which is immutable"):
        fastgemm.gemm(x, x, out=out)
    assert (out == 7).all()


def overlapping_outs():
    memory = np.zeros(4000, np.float16)
    a = memory[:48].reshape(2, 1, 4, 6)
    b = memory[2000:2090].reshape(1, 3, 6, 5)
    yield a, b, memory[40:160].reshape(2, 3, 4, 5), "out overlaps a"
    yield a, b, memory[1900:2020].reshape(2, 3, 4, 5), "out overlaps b"
    strided = np.lib.stride_tricks.as_strided(memory[3000:], (2, 3, 4, 5), (2, 42, 10, 2))
    yield a, b, strided, "out has two elements in one place"


@pytest.mark.parametrize(("a", "b", "out", "message"), list(overlapping_outs()))
def test_an_out_that_overlaps_across_batches_is_refused(a, b, out, message):
    with pytest.raises(ValueError, match=message):
        describe(a, b, out=out)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (lambda m: m[0:4], "D overlaps A"),
        (lambda m: m[2:6], "D overlaps A"),
        (lambda m: m[10:14], "D overlaps B"),
    ],
)
def test_an_out_that_overlaps_an_operand_is_refused(out, message):
    memory = np.ones((20, 4), np.float16)
    with pytest.raises(ValueError, match=message):
        fastgemm.gemm(memory[0:4], memory[12:16], out=out(memory))
    assert (memory == 1).all()


@pytest.mark.parametrize("role", ["a", "b", "c", "out"])
@pytest.mark.parametrize("device", [(CUDA, 0), (CUDA, 1)])
def test_each_operand_elsewhere_is_refused_with_all_devices_named(role, device):
    operands = {name: x for name in ("a", "b", "c", "out")}
    operands[role] = Producer((4, 4), device=device)
    with pytest.raises(ValueError, match="operands in different places") as refused:
        fastgemm.gemm(**operands)
    for name in operands:
        where = f"cuda:{device[1]}" if name == role else "host"
        kind = "dlpack_stub.Producer" if name == role else "numpy.ndarray"
        assert f"{name} ({kind}) on {where}" in str(refused.value)
    assert operands[role].calls == []


def test_a_stream_for_host_arrays_is_refused():
    with pytest.raises(ValueError, match="stream is given, but the operands are in host memory"):
        fastgemm.gemm(x, x, stream=1)


def test_beta_without_c_is_refused():
    with pytest.raises(ValueError, match="beta is given without c"):
        fastgemm.gemm(x, x, beta=1.0)


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("value", ["1", 1j, [1]])
def test_scalars_must_be_real_numbers(name, value):
    with pytest.raises(TypeError, match=f"{name} is a .*, not a real number"):
        fastgemm.gemm(x, x, c=x, **{name: value})


@pytest.mark.parametrize(
    ("arguments", "keywords", "message"),
    [
        ((), {}, "needs a and b"),
        ((x,), {}, "needs a and b"),
        ((x, x, x), {}, "takes 2 positional arguments"),
        ((x, x), {"a": x}, "multiple values for argument 'a'"),
        ((x, x), {"bananas": 1}, "unexpected keyword argument 'bananas'"),
        ((x, x), {"config": {"block_m": 64}}, "config is a dict, not a fastgemm.GemmConfig"),
    ],
)
def test_calls_are_checked_as_python_functions_are(arguments, keywords, message):
    with pytest.raises(TypeError, match=message):
        fastgemm.gemm(*arguments, **keywords)


def test_strides_between_elements_are_refused():
    records = np.zeros((4, 4), [("x", "f2"), ("y", "u1")])
    with pytest.raises(ValueError, match="a has a stride of 3 bytes in dimension 1"):
        fastgemm.gemm(records["x"], x)
    odd = np.frombuffer(bytes(33), np.uint8)[1:].view(np.float16).reshape(4, 4)
    with pytest.raises(ValueError, match="not a multiple of its item size of 2 bytes"):
        fastgemm.gemm(odd, x)


def test_masks_are_not_ignored():
    with pytest.raises(TypeError, match="its mask would be ignored"):
        fastgemm.gemm(np.ma.masked_array(x), x)


def test_traced_values_are_refused_as_memory():
    jax = pytest.importorskip("jax")
    with pytest.raises(TypeError, match="a traced value .* has no memory"):
        jax.jit(lambda a: describe(a, a))(jax.numpy.ones((4, 4), "float16"))


class TestTorch:
    @pytest.fixture(autouse=True)
    def setup(self):
        self.torch = pytest.importorskip("torch")
        self.x = self.torch.ones(4, 4, dtype=self.torch.float16)

    @pytest.mark.parametrize("role", ["a", "b", "c", "out"])
    def test_what_autograd_would_miss_is_refused(self, role):
        operands = {"a": self.x, "b": self.x, role: self.x.clone().requires_grad_()}
        with pytest.raises(ValueError, match=rf"{role} requires grad .* pass {role}.detach\(\)"):
            fastgemm.prepare(**operands)
        if role == "out":
            with pytest.raises(ValueError, match="out requires grad"):
                fastgemm.gemm(**operands)

    @pytest.mark.filterwarnings("ignore:ComplexHalf")
    def test_the_negative_bit_is_seen(self):
        pairs = self.torch.zeros(4, 4, dtype=self.torch.complex32)
        with pytest.raises(TypeError, match=r"negative bit set; pass a.resolve_neg\(\)"):
            fastgemm.gemm(pairs.conj().imag, self.x)
        one = self.torch.zeros(1, 1, dtype=self.torch.complex32).conj().imag
        with pytest.raises(TypeError, match="negative bit"):
            fastgemm.gemm(one, self.x[:1, :1])
        assert describe(pairs.conj().real, self.x)["shape"] == (4, 4)

    @pytest.mark.parametrize(
        "make",
        [
            lambda torch, x: x.to_sparse(),
            lambda torch, x: x.to_sparse_csr(),
            lambda torch, x: torch.quantize_per_tensor(x.float(), 1.0, 0, torch.qint8),
            lambda torch, x: x.to("meta"),
            lambda torch, x: torch.nested.nested_tensor([x, x]),
        ],
        ids=["sparse", "csr", "quantised", "meta", "nested"],
    )
    @pytest.mark.filterwarnings("ignore")
    def test_tensors_without_plain_memory_are_refused(self, make):
        odd = make(self.torch, self.x)
        with pytest.raises(TypeError, match=r"^b \(torch.Tensor\)"):
            fastgemm.gemm(self.x, odd)

    @pytest.mark.parametrize("dtype", ["int32", "float64", "bool", "complex64", "complex32"])
    def test_other_dtypes_are_refused(self, dtype):
        with pytest.raises(TypeError, match=TABLE):
            fastgemm.gemm(self.x, self.x.to(getattr(self.torch, dtype)))

    def test_fake_tensors_are_refused_as_memory(self):
        from torch._subclasses import FakeTensorMode

        with FakeTensorMode():
            fake = self.torch.ones(4, 4, dtype=self.torch.float16)
        with pytest.raises(TypeError, match="does not hold plain memory"):
            describe(self.x, fake)

    def test_wrapped_tensors_of_torch_func_are_refused_as_memory(self):
        with pytest.raises(TypeError, match="inside of torch.func has no memory"):
            self.torch.func.vmap(lambda a: describe(a, a))(self.x.expand(3, 4, 4))
        with pytest.raises(ValueError, match="a requires grad"):
            self.torch.func.grad(lambda a: describe(a, a))(self.x)


def test_a_refused_call_leaves_the_cache_as_it_was():
    def counts():
        found = fastgemm.cache_info()
        return found.loaded, found.misses, found.compiles, found.disk_files

    before = counts()
    for b in (np.zeros((3, 3), np.float16), x.astype(int), [1]):
        with pytest.raises((ValueError, TypeError)):
            fastgemm.gemm(x, b)
    with pytest.raises(ValueError):
        fastgemm.plan(64, 64, 64, arch="sm_80", config=fastgemm.GemmConfig(block_m=7))
    assert counts() == before


@pytest.mark.skipif(bool(fastgemm.devices()), reason="there is a GPU")
def test_without_a_gpu_the_reason_is_told():
    with pytest.raises(fastgemm.DeviceError, match="GPU") as refused:
        fastgemm.plan(4, 4, 4, device=0)
    assert isinstance(refused.value, RuntimeError)
    assert isinstance(refused.value.code, int)
    assert not fastgemm.driver_info().available
    assert fastgemm.driver_info().reason


def test_an_empty_product_needs_no_gpu():
    assert fastgemm.gemm(x[:0], x).shape == (0, 4)
    assert fastgemm.gemm(np.zeros((0, 2, 3), np.float16), np.zeros((3, 4), np.float16)).size == 0
