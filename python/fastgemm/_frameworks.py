"""What the extension asks of the caller's array framework: streams and results."""

import functools

_DTYPES = {
    "float16": ("fp16", "f16", "half"),
    "bfloat16": ("bf16",),
    "float32": ("fp32", "f32"),
}


def dtype_name(dtype) -> str:
    """The full name of a dtype, given by name or as a framework has it."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None)
    name = (name or getattr(dtype, "__name__", None) or str(dtype)).rpartition(".")[2].lower()
    for full, others in _DTYPES.items():
        if name == full or name in others:
            return full
    raise TypeError(
        f"unsupported dtype {dtype!r}: operands are float16 or bfloat16, outputs also float32"
    )


def torch_call(function: str, arguments: dict):
    """gemm or linear of tensors that need gradients or are traced, as the operator for them."""
    from fastgemm.torch import operator, operator_linear

    _refuse(arguments, function)
    return (operator_linear if function == "linear" else operator)(**arguments)


def torch_wrapped(tensor) -> bool:
    """Whether torch.func (vmap, grad, jvp ...) has put a wrapper of its own around a tensor."""
    import torch

    return torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def jax_call(function: str, arguments: dict):
    """gemm or linear of values that JAX traces."""
    import fastgemm.jax

    _refuse(arguments, function)
    return getattr(fastgemm.jax, function)(**arguments)


_OPERANDS = "a", "b", "c", "x", "weight", "bias"
_OF_OPERATORS = *_OPERANDS, "alpha", "beta", "activation", "out_dtype", "config"


def _refuse(arguments, function):
    for name in arguments:
        if name not in _OF_OPERATORS:
            raise ValueError(
                f"{name}= is given, but an operand requires grad or is traced, so that the product "
                "is computed by an operator, which returns a new array on the current stream and "
                f"has no {name}=; call {function} under torch.no_grad() or outside of the trace"
            )


def torch_stream(device: int) -> int:
    import torch

    return torch.cuda.current_stream(device).cuda_stream


def torch_empty(like, shape, dtype, stream):
    """Allocates on `stream`, so that the memory was not in use on another one just before."""
    import contextlib

    import torch

    on_stream = contextlib.nullcontext()
    if stream is not None:
        on_stream = torch.cuda.stream(torch.cuda.ExternalStream(stream, like.device))
    with on_stream:
        return like.new_empty(shape, dtype=getattr(torch, dtype))


class _Handle:
    """A stream handle as an object of the CUDA stream protocol."""

    def __init__(self, handle):
        self._handle = handle

    def __cuda_stream__(self):
        return 0, self._handle


def _cupy_external(handle: int, device: int):
    import cupy

    if hasattr(cupy.cuda.Stream, "from_external"):
        return cupy.cuda.Stream.from_external(_Handle(handle))
    return cupy.cuda.ExternalStream(handle, device)


def cupy_order(device: int, stream: int) -> None:
    """Makes `stream` wait for what CuPy has enqueued on its current one."""
    import cupy

    with cupy.cuda.Device(device):
        _cupy_external(stream, device).wait_event(cupy.cuda.get_current_stream().record())


def cupy_empty(like, shape, dtype, stream):
    """Allocates on `stream`, so that the memory was not in use on another one just before."""
    import cupy

    dtype = _numpy_dtype(dtype)
    with like.device:
        if stream is None:
            return cupy.ndarray(shape, dtype)
        with _cupy_external(stream, like.device.id):
            return cupy.ndarray(shape, dtype)


def numpy_empty(like, shape, dtype, stream):
    """Host memory for NumPy and for JAX on the CPU."""
    import numpy

    return numpy.empty(shape, dtype=_numpy_dtype(dtype))


def _numpy_dtype(name):
    """A dtype that NumPy or, for those it lacks, ml_dtypes has."""
    if name in ("float16", "float32", "int8"):
        return name
    import ml_dtypes

    return getattr(ml_dtypes, name)


def jax_from_host(array, like, device):
    import jax

    return jax.device_put(array, next(iter(like.devices())))


class _Exported:
    """A DLPack capsule with the methods that a consumer calls; its memory is complete."""

    def __init__(self, capsule, device):
        self._capsule, self._device = capsule, device

    def __dlpack__(self, *, stream=None, **_):
        return self._capsule

    def __dlpack_device__(self):
        return 2, self._device


def jax_capsule(array):
    """A DLPack capsule, ordered before the legacy default stream; None: by the protocol, then.

    Through jaxlib itself where it has what is known here: __dlpack__ takes ten times as long.
    """
    sharding = array.sharding
    if type(sharding).__name__ != "SingleDeviceSharding" or _jaxlib() is None:
        return None
    (device,) = array.devices()
    stream = None if device.platform == "cpu" else 1
    return _jaxlib().buffer_to_dlpack_managed_tensor(array, stream=stream)


def jax_from_device(capsule, like, device):
    (place,) = like.devices()
    # The short way here too: from_dlpack takes 20 us more. Releases differ in their arguments.
    for known in ((None, 2), (None,)) if _jaxlib() else ():
        try:
            return _jaxlib().dlpack_managed_tensor_to_buffer(capsule, place, None, *known)
        except TypeError:
            continue
    import jax

    return jax.dlpack.from_dlpack(_Exported(capsule, device))


@functools.cache
def _jaxlib():
    try:
        from jaxlib import _jax
    except ImportError:
        return None
    names = "buffer_to_dlpack_managed_tensor", "dlpack_managed_tensor_to_buffer"
    return _jax if all(hasattr(_jax, name) for name in names) else None
