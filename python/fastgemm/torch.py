"""fastgemm in PyTorch: an operator for autograd, torch.compile and torch.func, and linear layers.

The operator is torch.ops.fastgemm.gemm. On CPU tensors it computes with torch's own product, in
float32 and rounded once, so that models and tests run where there is no GPU.
"""

import json

import torch
from torch.autograd import forward_ad
from torch.nn import functional

from . import _core
from ._autograd import FunctionalProduct, backward, linear_backward, setup_context, vmap
from ._frameworks import dtype_name

__all__ = ["Linear", "Patch", "gemm", "linear", "patch"]

ACTIVATIONS = {
    "relu": torch.relu,
    "gelu": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}
_LOW = (torch.float16, torch.bfloat16)

_library = torch.library.Library("fastgemm", "DEF")
_library.define(
    "gemm(Tensor a, Tensor b, Tensor? c, Tensor? bias, *, float alpha=1.0, "
    "float? beta=None, str? activation=None, ScalarType? out_dtype=None, str? config=None) "
    "-> Tensor"
)
_operator = torch.ops.fastgemm.gemm.default


def _on_gpu(a, b, c=None, bias=None, *, config=None, **numbers):
    return _core._gemm(a, b, c=c, bias=bias, config=_decoded(config), **numbers)


def _on_cpu(
    a,
    b,
    c=None,
    bias=None,
    *,
    alpha=1.0,
    beta=None,
    activation=None,
    out_dtype=None,
    config=None,
):
    result = _like_result(a, b, c, out_dtype)
    d = alpha * torch.matmul(a.float(), b.float())
    if bias is not None:
        d = d + bias.float()
    if c is not None:
        d = d + (1.0 if beta is None else beta) * c.float()
    if activation is not None:
        d = ACTIVATIONS[activation](d)
    return result.copy_(d)


def _like_result(a, b, c=None, out_dtype=None):
    """An uninitialised result. Raises the errors of gemm() that shapes and dtypes call for."""
    out_dtype = out_dtype or a.dtype
    fits = a.dtype == b.dtype and a.dtype in _LOW and out_dtype in (a.dtype, torch.float32)
    if not fits or (c is not None and c.dtype != out_dtype):
        got = f"a {a.dtype}, b {b.dtype}" + (f", c {c.dtype}" if c is not None else "")
        raise TypeError(
            f"unsupported dtypes: {got}, result {out_dtype}; supported are a and b of float16 or "
            "bfloat16, both the same, with c and the result of that dtype or float32"
        )
    return a.new_empty(torch.matmul(a.to("meta"), b.to("meta")).shape, dtype=out_dtype)


def _fake(a, b, c=None, bias=None, *, out_dtype=None, **_):
    return _like_result(a, b, c, out_dtype)


_library.impl("gemm", _on_gpu, "CUDA")
_library.impl("gemm", _on_cpu, "CPU")
torch.library.register_fake("fastgemm::gemm", _fake, lib=_library)
torch.library.register_autograd(
    "fastgemm::gemm", backward, setup_context=setup_context, lib=_library
)
torch.library.register_vmap("fastgemm::gemm", vmap, lib=_library)


@torch.compiler.assume_constant_result
def _encoded(config):
    """A GemmConfig as an operator can take it."""
    if config is None:
        return None
    fields = [name for name, value in vars(type(config)).items() if isinstance(value, property)]
    return json.dumps({name: getattr(config, name) for name in fields})


def _decoded(text):
    return None if text is None else _core.GemmConfig(**json.loads(text))


def _is_direct(x):
    """Whether fastgemm.gemm() will do: it goes around the dispatcher, and comes back to the
    operator by itself for gradients, fake tensors and torch.func."""
    return (
        x.is_cuda
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cuda")
        and torch._C._len_torch_dispatch_stack() == 0
    )


def _are_plain(*tensors):
    """Whether nothing but autograd has to see what is done with them."""
    plain = (None.__class__, torch.Tensor, torch.nn.Parameter)
    return torch._C._len_torch_dispatch_stack() == 0 and all(type(x) in plain for x in tensors)


class RecordedProduct(torch.autograd.Function):
    """The operator as autograd sees it, without the 20 us that its dispatch takes then."""

    @staticmethod
    def forward(ctx, a, b, c, bias, numbers):
        setup_context(ctx, (a, b, c, bias), numbers, None)
        return (_on_gpu if a.is_cuda else _on_cpu)(a, b, c, bias, **numbers)

    @staticmethod
    def backward(ctx, grad):
        return *backward(ctx, grad), None


class RecordedLinear(torch.autograd.Function):
    """The same of a linear layer: no view of the weight, and its gradient has its layout."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        if x.is_cuda:
            return _core._linear(x, weight, bias)
        return _on_cpu(x, weight.t(), None, bias)

    backward = staticmethod(linear_backward)


def _is_recorded_linear(x, weight, bias):
    """Whether RecordedLinear does what operator() would, with less in between."""
    return (
        torch.is_grad_enabled()
        and (weight.requires_grad or x.requires_grad or (bias is not None and bias.requires_grad))
        and x.dtype in _LOW
        and x.dtype == weight.dtype
        and weight.ndim == 2
        and (bias is None or (bias.ndim == 1 and bias.dtype == x.dtype))
        and _are_plain(x, weight, bias)
        and not torch._C._are_functorch_transforms_active()
        and forward_ad._current_level < 0
    )


def _autocasts(device):
    return device in ("cuda", "cpu") and torch.is_autocast_enabled(device)


def _cast(*tensors):
    """What torch.autocast makes of the operands of a matrix product."""
    device = tensors[0].device.type
    if not _autocasts(device):
        return tensors
    dtype = torch.get_autocast_dtype(device)
    stay = (None, torch.float64)
    return tuple(x if getattr(x, "dtype", None) in stay else x.to(dtype) for x in tensors)


def operator(
    a,
    b,
    *,
    c=None,
    alpha=1.0,
    beta=None,
    bias=None,
    activation=None,
    out_dtype=None,
    config=None,
):
    """gemm() through the dispatcher. A product to be differentiated gets its activation after."""
    if out_dtype is not None and not isinstance(out_dtype, torch.dtype):
        out_dtype = getattr(torch, dtype_name(out_dtype))
    a, b, c, bias = _cast(a, b, c, bias)
    recorded = torch.is_grad_enabled() and any(
        x is not None and x.requires_grad for x in (a, b, c, bias)
    )
    fused = None if recorded else activation
    numbers = {
        "alpha": alpha,
        "beta": beta,
        "activation": fused,
        "out_dtype": out_dtype,
        "config": _encoded(config),
    }
    if torch.compiler.is_compiling():
        d = _operator(a, b, c, bias, **numbers)
    elif torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        d = FunctionalProduct.apply(a, b, c, bias, numbers)
    elif recorded and _are_plain(a, b, c, bias):
        d = RecordedProduct.apply(a, b, c, bias, numbers)
    else:
        d = _operator(a, b, c, bias, **numbers)
    return d if fused == activation else ACTIVATIONS[activation](d)


def operator_linear(x, weight, bias=None, **arguments):
    if weight.ndim != 2:
        raise ValueError(
            f"weight has shape {tuple(weight.shape)}; expected a matrix (out_features, in_features)"
        )
    own = not arguments and not torch.compiler.is_compiling() and not _autocasts(x.device.type)
    if own and _is_recorded_linear(x, weight, bias):
        return RecordedLinear.apply(x, weight, bias)
    return operator(x, weight.t(), bias=bias, **arguments)


def gemm(a, b, **arguments):
    """fastgemm.gemm() that torch.compile, autograd, torch.autocast and torch.func understand.

    Takes the arguments of fastgemm.gemm() but out and stream; config in compiled code needs
    PyTorch 2.13. Gradients are products of fastgemm too, of any order. An activation whose input is
    needed for them is computed by torch, after the product was rounded.
    """
    if _is_direct(a):
        return _core.gemm(a, b, **arguments)
    return operator(a, b, **arguments)


def linear(x, weight, bias=None, **arguments):
    """fastgemm.linear() in the same way: x @ weight.T + bias, with weight (out, in)."""
    if _is_direct(x):
        if not arguments and _is_recorded_linear(x, weight, bias):
            return RecordedLinear.apply(x, weight, bias)
        return _core.linear(x, weight, bias, **arguments)
    return operator_linear(x, weight, bias, **arguments)


class Linear(torch.nn.Linear):
    """torch.nn.Linear with fastgemm's product. Other dtypes than float16, bfloat16: torch's own."""

    def forward(self, x):
        weight = self.weight
        own = (x.dtype in _LOW and x.dtype == weight.dtype) or _autocasts(x.device.type)
        if not own:
            return super().forward(x)
        return linear(x, weight, self.bias)


class Patch:
    """The layers that patch() has changed. undo(), or the end of a `with`, changes them back."""

    def __init__(self, layers):
        self.layers = layers

    def undo(self):
        while self.layers:
            self.layers.pop().__class__ = torch.nn.Linear

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.undo()


def patch(model, where=lambda name, layer: True):
    """Makes every torch.nn.Linear in `model` a fastgemm.torch.Linear, in place. Returns a Patch.

    where(name, layer) says which. Parameters, hooks and the state dict stay as they are; layers of
    a class derived from torch.nn.Linear are left alone.
    """
    layers = [
        layer
        for name, layer in model.named_modules()
        if type(layer) is torch.nn.Linear and where(name, layer)
    ]
    for layer in layers:
        layer.__class__ = Linear
    return Patch(layers)


@torch.compiler.substitute_in_graph(_core.gemm, skip_signature_check=True)
def _gemm_in_graph(a, b, **arguments):
    return gemm(a, b, **arguments)


@torch.compiler.substitute_in_graph(_core.linear, skip_signature_check=True)
def _linear_in_graph(x, weight, bias=None, **arguments):
    return linear(x, weight, bias, **arguments)
