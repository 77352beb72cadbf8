"""Derivatives and vmap of the PyTorch operator, in terms of the operator itself."""

import torch


def product(a, b, **arguments):
    from .torch import gemm

    return gemm(a, b, **arguments)


def setup_context(ctx, inputs, keyword_only_inputs, output):
    a, b, c, bias = inputs
    if keyword_only_inputs["activation"] is not None:
        raise ValueError(
            "an activation inside of the operator cannot be differentiated; call "
            "fastgemm.torch.gemm, which applies it after the product then"
        )
    ctx.save_for_backward(a, b)
    ctx.alpha = keyword_only_inputs["alpha"]
    beta = keyword_only_inputs["beta"]
    ctx.beta = 1.0 if beta is None else beta
    ctx.addends = [None if x is None else x.shape for x in (c, bias)]


def backward(ctx, grad):
    """dA = alpha dD B^T, dB = alpha A^T dD, dC = beta dD; each of its input's shape and dtype.

    A float32 dD is rounded to the dtype of A and B for the products.
    """
    a, b = ctx.saved_tensors
    need_a, need_b, need_c, need_bias = ctx.needs_input_grad[:4]
    left = a.unsqueeze(-2) if a.ndim == 1 else a
    right = b.unsqueeze(-1) if b.ndim == 1 else b
    d = grad.to(a.dtype)
    d = d.unsqueeze(-1) if b.ndim == 1 else d
    d = d.unsqueeze(-2) if a.ndim == 1 else d

    grad_a = grad_b = grad_c = grad_bias = None
    if need_a:
        grad_a = summed_product(d, right.mT, left.shape, ctx.alpha).reshape(a.shape)
    if need_b:
        grad_b = summed_product(left.mT, d, right.shape, ctx.alpha).reshape(b.shape)
    if need_c:
        grad_c = (ctx.beta * grad).sum_to_size(ctx.addends[0])
    if need_bias:
        grad_bias = grad.sum_to_size(ctx.addends[1])
    return grad_a, grad_b, grad_c, grad_bias


def linear_backward(ctx, grad):
    """dX = dD W and dW = dD^T X, each laid out as its input; the sums of bias over all rows."""
    x, weight = ctx.saved_tensors
    need_x, need_weight, need_bias = ctx.needs_input_grad
    grad_x = product(grad, weight) if need_x else None
    grad_weight = grad_bias = None
    if need_weight:
        rows = grad.reshape(-1, grad.shape[-1])
        grad_weight = product(rows.t(), x.reshape(-1, x.shape[-1]))
    if need_bias:
        grad_bias = grad.sum_to_size(grad.shape[-1])
    return grad_x, grad_weight, grad_bias


def summed_product(x, y, shape, alpha):
    """x @ y, summed over the batch dimensions that `shape` lacks or has as 1; sums in float32."""
    batch = torch.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    if not batch or tuple(shape) == (*batch, x.shape[-2], y.shape[-1]):
        return product(x, y, alpha=alpha)
    if len(shape) == 2:
        # One product over K and all batches: the sum stays in the accumulators.
        x = x.expand(*batch, *x.shape[-2:]).flatten(0, -3).transpose(0, 1).flatten(1, 2)
        y = y.expand(*batch, *y.shape[-2:]).flatten(0, -2)
        return product(x, y, alpha=alpha)
    wide = product(x, y, alpha=alpha, out_dtype=torch.float32)
    return wide.sum_to_size(shape).to(x.dtype)


def vmap(info, in_dims, a, b, c=None, bias=None, *, beta=None, activation=None, **arguments):
    """A mapped dimension becomes the first batch dimension of a product."""
    a_dim, b_dim, c_dim, bias_dim = (*in_dims, None, None)[:4]
    a_rank = a.ndim - (a_dim is not None)
    b_rank = b.ndim - (b_dim is not None)
    rank = max(a_rank, b_rank, 2)
    left = matrix(a, a_dim, rank, -2 if a_rank == 1 else None)
    right = matrix(b, b_dim, rank, -1 if b_rank == 1 else None)
    if c is None and bias is None:
        d = product(left, right, activation=activation, **arguments)
        return without_vector_dims(d, a_rank, b_rank), 0

    # Added in float32, so that there is one rounding here too.
    out_dtype = arguments.pop("out_dtype", None) or a.dtype
    d = product(left, right, out_dtype=torch.float32, **arguments)
    d = without_vector_dims(d, a_rank, b_rank)
    if d.shape[0] != info.batch_size or (a_dim is None and b_dim is None):
        d = d.expand(info.batch_size, *d.shape)
    if bias is not None:
        d = d + addend(bias, bias_dim, d.ndim)
    if c is not None:
        d = d + (1.0 if beta is None else beta) * addend(c, c_dim, d.ndim)
    if activation is not None:
        from .torch import ACTIVATIONS

        d = ACTIVATIONS[activation](d)
    return d.to(out_dtype), 0


def matrix(x, dim, rank, vector_dim):
    """x as (mapped, batch..., rows, cols) with `rank` dimensions after the first, if mapped."""
    if vector_dim is not None:
        x = x.movedim(dim, 0).unsqueeze(vector_dim) if dim is not None else x.unsqueeze(vector_dim)
    elif dim is not None:
        x = x.movedim(dim, 0)
    if dim is None:
        return x
    return x.reshape(x.shape[0], *(1,) * (rank + 1 - x.ndim), *x.shape[1:])


def without_vector_dims(d, a_rank, b_rank):
    d = d.squeeze(-1) if b_rank == 1 else d
    return d.squeeze(-1 if b_rank == 1 else -2) if a_rank == 1 else d


def addend(x, dim, ndim):
    """x in float32, its mapped dimension first, of `ndim` dimensions in all if it is mapped."""
    x = x.float()
    if dim is None:
        return x
    x = x.movedim(dim, 0)
    return x.reshape(x.shape[0], *(1,) * (ndim - x.ndim), *x.shape[1:])


class FunctionalProduct(torch.autograd.Function):
    """The same for torch.func and dual numbers, which do not see what is registered."""

    @staticmethod
    def forward(a, b, c, bias, numbers):
        return torch.ops.fastgemm.gemm.default(a, b, c, bias, **numbers)

    @staticmethod
    def setup_context(ctx, inputs, output):
        setup_context(ctx, inputs[:4], inputs[4], output)
        ctx.save_for_forward(*inputs[:2])
        ctx.out_dtype = output.dtype

    @staticmethod
    def jvp(ctx, a_tangent, b_tangent, c_tangent, bias_tangent, _):
        a, b = ctx.saved_tensors
        how = {"alpha": ctx.alpha, "out_dtype": ctx.out_dtype}
        parts = [
            None if a_tangent is None else product(a_tangent, b, **how),
            None if b_tangent is None else product(a, b_tangent, **how),
            None if c_tangent is None else ctx.beta * c_tangent,
            bias_tangent,
        ]
        shape = torch.matmul(a.to("meta"), b.to("meta")).shape
        return sum(part for part in parts if part is not None).expand(shape)

    @staticmethod
    def backward(ctx, grad):
        return *backward(ctx, grad), None

    @staticmethod
    def vmap(info, in_dims, a, b, c, bias, numbers):
        return vmap(info, in_dims[:4], a, b, c, bias, **numbers)
