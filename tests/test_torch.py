"""The PyTorch operator and layers on CPU tensors: autograd, compile, func, autocast, patching."""

import fastgemm
import numpy as np
import pytest
from matmul_shapes import SHAPES

torch = pytest.importorskip("torch")
ft = pytest.importorskip("fastgemm.torch")

F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32


def integers(*shape, dtype=F16, seed=0, grad=False):
    """Small integers: their products and sums are exact in every dtype."""
    values = np.random.default_rng(seed).integers(-2, 3, shape)
    return torch.tensor(values).to(dtype).requires_grad_(grad)


@pytest.mark.parametrize("out_dtype", [None, F32])
@pytest.mark.parametrize(("a_shape", "b_shape"), SHAPES)
def test_results_and_gradients_are_those_of_matmul(a_shape, b_shape, out_dtype):
    a, b = integers(*a_shape, grad=True), integers(*b_shape, seed=1, grad=True)
    d = fastgemm.gemm(a, b, alpha=0.5, out_dtype=out_dtype)
    wide_a, wide_b = (x.detach().double().requires_grad_() for x in (a, b))
    expected = 0.5 * torch.matmul(wide_a, wide_b)
    assert d.dtype == (out_dtype or F16)
    assert torch.equal(d.double(), expected)
    grad = integers(*d.shape, dtype=d.dtype, seed=2)
    d.backward(grad)
    expected.backward(grad.double())
    for x, wide in ((a, wide_a), (b, wide_b)):
        assert x.grad.dtype == F16
        assert x.grad.shape == x.shape
        assert torch.equal(x.grad.double(), wide.grad)


@pytest.mark.parametrize("name", [F32, "float32", "fp32", np.float32, np.dtype("float32")])
def test_out_dtype_is_what_gemm_takes(name):
    a = integers(4, 4, grad=True)
    assert fastgemm.gemm(a, a, out_dtype=name).dtype == F32
    with pytest.raises(TypeError, match="unsupported dtype 'int8'"):
        fastgemm.gemm(a, a, out_dtype="int8")


@pytest.mark.parametrize("c_shape", [(3, 4, 6), (4, 6), (6,), (1, 6), (4, 1), ()])
def test_gradients_of_addends(c_shape):
    a, b, bias = integers(3, 4, 8), integers(8, 6, seed=1), integers(6, seed=2, grad=True)
    c = integers(*c_shape, seed=3, grad=True)
    grad = integers(3, 4, 6, seed=4)
    ft.gemm(a, b, c=c, beta=-2.0, bias=bias).backward(grad)
    assert torch.equal(c.grad, (-2 * grad).sum_to_size(c_shape))
    assert torch.equal(bias.grad, grad.sum_to_size(6))


@pytest.mark.parametrize("activation", list(ft.ACTIVATIONS))
def test_an_activation_is_differentiated(activation):
    x, weight = integers(4, 8, dtype=BF16), integers(6, 8, dtype=BF16, seed=1, grad=True)
    bias = integers(6, dtype=BF16, seed=2, grad=True)
    y = fastgemm.linear(x, weight, bias, activation=activation)
    y.sum().backward()
    w, b = (t.detach().requires_grad_() for t in (weight, bias))
    expected = ft.ACTIVATIONS[activation](torch.nn.functional.linear(x, w, b))
    expected.sum().backward()
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(weight.grad, w.grad)
    torch.testing.assert_close(bias.grad, b.grad)
    with torch.no_grad():
        fused = ft.linear(x, weight, bias, activation=activation)
    torch.testing.assert_close(fused, y.detach())


def test_an_activation_inside_of_the_operator_has_no_gradient():
    a = integers(4, 4, grad=True)
    with pytest.raises(ValueError, match="cannot be differentiated; call fastgemm.torch.gemm"):
        torch.ops.fastgemm.gemm(a, a, None, None, activation="relu")


def test_gradcheck():
    """Finite differences of a bilinear function are exact at any step."""
    a, b, c = (integers(*s, grad=True) for s in ((3, 4), (4, 2), (3, 2)))

    def product(a, b, c):
        return ft.gemm(a, b, c=c, alpha=0.5, beta=2.0)

    options = {"eps": 0.5, "atol": 1e-3, "rtol": 0, "nondet_tol": 0.0}
    with pytest.warns(UserWarning, match="not a double precision"):
        assert torch.autograd.gradcheck(product, (a, b, c), **options)
    with pytest.warns(UserWarning, match="not a double precision"):
        grad = integers(3, 2, seed=2, grad=True)
        assert torch.autograd.gradgradcheck(product, (a, b, c), grad, **options)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize(("a_shape", "b_shape"), SHAPES[:9])
def test_opcheck(a_shape, b_shape, grad):
    a, b = integers(*a_shape, grad=grad), integers(*b_shape, seed=1, grad=grad)
    torch.library.opcheck(torch.ops.fastgemm.gemm.default, (a, b, None, None))
    torch.library.opcheck(
        torch.ops.fastgemm.gemm.default, (a, b, None, None), {"alpha": 2.0, "out_dtype": F32}
    )


def test_opcheck_of_addends():
    a, b = integers(3, 4, 8, grad=True), integers(8, 6, seed=1)
    c, bias = integers(4, 6, seed=2, grad=True), integers(6, seed=3, grad=True)
    torch.library.opcheck(torch.ops.fastgemm.gemm.default, (a, b, c, bias), {"beta": 0.5})


@pytest.mark.parametrize("call", [fastgemm.gemm, ft.gemm])
def test_compiled_without_a_graph_break(call):
    a, b = integers(4, 8, grad=True), integers(8, 6, seed=1, grad=True)

    def block(a, b):
        return call(torch.relu(a), b, alpha=2.0, out_dtype="float32") + 1

    d = torch.compile(block, fullgraph=True, backend="aot_eager")(a, b)
    d.sum().backward()
    wide_a, wide_b = (x.detach().double().requires_grad_() for x in (a, b))
    expected = 2 * torch.relu(wide_a) @ wide_b + 1
    expected.sum().backward()
    assert torch.equal(d.double(), expected)
    assert torch.equal(a.grad.double(), wide_a.grad)
    assert torch.equal(b.grad.double(), wide_b.grad)


@pytest.mark.skipif(
    torch.__version__ < "2.13", reason="Dynamo takes an object as a constant from 2.13 on"
)
def test_a_config_is_a_constant_of_compiled_code():
    a, config = integers(4, 4), fastgemm.GemmConfig(block_m=64, swizzle=False)
    seen = []

    def backend(graph, _):
        seen.extend(node.kwargs.get("config") for node in graph.graph.nodes)
        return graph

    compiled = torch.compile(
        lambda a: fastgemm.gemm(a, a, config=config), fullgraph=True, backend=backend
    )
    assert torch.equal(compiled(a), a @ a)
    (text,) = filter(None, seen)
    assert ft._decoded(text) == config


def test_compiled_for_any_size_once():
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounter()
    compiled = torch.compile(fastgemm.linear, fullgraph=True, backend=counter, dynamic=True)
    weight = integers(6, 8, seed=1)
    for tokens in (3, 5, 17):
        x = integers(tokens, 8)
        assert torch.equal(compiled(x, weight), x @ weight.T)
    assert counter.frame_count == 1


def test_exported():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = ft.Linear(8, 6, dtype=BF16)

        def forward(self, x):
            return self.layer(x)

    model, x = Model(), integers(4, 8, dtype=BF16)
    program = torch.export.export(model, (x,))
    assert "torch.ops.fastgemm.gemm.default" in program.graph_module.code
    torch.testing.assert_close(program.module()(x), model(x))


def test_fake_and_meta_tensors_have_the_result_s_shape():
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        d = fastgemm.gemm(torch.ones(3, 4, 8, dtype=F16), torch.ones(8, 6, dtype=F16))
    assert (d.shape, d.dtype) == ((3, 4, 6), F16)
    meta = ft.linear(*(integers(4, 4).to("meta") for _ in range(2)), out_dtype=F32)
    assert (meta.shape, meta.dtype, meta.device.type) == ((4, 4), F32, "meta")


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0), (1, 2)])
@pytest.mark.parametrize(("a_shape", "b_shape"), SHAPES[:11])
def test_vmap(a_shape, b_shape, in_dims):
    def mapped(shape, dim, seed):
        x = integers(5, *shape, seed=seed)
        return x[0] if dim is None else x.movedim(0, min(dim, x.ndim - 1))

    shapes = a_shape, b_shape
    dims = tuple(d and min(d, len(s)) for d, s in zip(in_dims, shapes, strict=True))
    a, b = mapped(a_shape, dims[0], 0), mapped(b_shape, dims[1], 1)
    d = torch.func.vmap(fastgemm.gemm, in_dims=dims)(a, b)
    assert torch.equal(d, torch.func.vmap(torch.matmul, in_dims=dims)(a.float(), b.float()).half())


def test_vmap_of_addends():
    a, b, c, bias = (integers(5, *s) for s in ((4, 8), (8, 6), (4, 6), (6,)))

    def mine(a, c, bias):
        return ft.gemm(a, b[0], c=c, bias=bias, activation="relu")

    def theirs(a, c, bias):
        return torch.relu(a.float() @ b[0].float() + c + bias).half()

    assert torch.equal(torch.vmap(mine)(a, c, bias), torch.vmap(theirs)(a, c, bias))


def test_func_transforms_compose():
    a, b = integers(5, 4, 8), integers(8, 6, seed=1)

    def mine(a, b):
        return (fastgemm.gemm(a, b).float() ** 2).sum()

    def theirs(a, b):
        return ((a.float() @ b.float()) ** 2).sum()

    grads = torch.func.vmap(torch.func.grad(mine, argnums=(0, 1)), in_dims=(0, None))(a, b)
    expected = torch.func.vmap(torch.func.grad(theirs, argnums=(0, 1)), in_dims=(0, None))(a, b)
    for x, y in zip(grads, expected, strict=True):
        torch.testing.assert_close(x, y)


def test_forward_mode():
    from torch.autograd import forward_ad

    a, b, bias = integers(4, 8), integers(8, 6, seed=1), integers(6, seed=2)
    tangents = integers(4, 8, seed=3), integers(8, 6, seed=4), integers(6, seed=5)
    expected = tangents[0] @ b + a @ tangents[1] + tangents[2]
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(x, t) for x, t in zip((a, b, bias), tangents, strict=True)]
        d = forward_ad.unpack_dual(fastgemm.linear(duals[0], duals[1].T, duals[2]))
        assert torch.equal(d.tangent, expected)
        d = forward_ad.unpack_dual(ft.gemm(a, b, c=duals[2]))
        assert torch.equal(d.tangent, tangents[2].expand(4, 6))
    _, tangent = torch.func.jvp(lambda *x: ft.gemm(*x[:2], bias=x[2]), (a, b, bias), tangents)
    assert torch.equal(tangent, expected)


def test_autocast_casts_as_for_matmul():
    x, weight = integers(4, 8, dtype=F32, grad=True), integers(6, 8, dtype=F32, seed=1, grad=True)
    with torch.autocast("cpu", dtype=BF16):
        y = ft.linear(x, weight)
        assert y.dtype == torch.nn.functional.linear(x, weight).dtype == BF16
    y.sum().backward()
    assert x.grad.dtype == weight.grad.dtype == F32
    assert torch.equal(weight.grad, x.detach().sum(0).expand(6, 8))
    with pytest.raises(TypeError, match="unsupported dtypes: a torch.float32"):
        ft.gemm(x, weight.T)


def test_operators_have_neither_out_nor_stream():
    a = integers(4, 4, grad=True)
    for name, value in (("out", integers(4, 4)), ("stream", 5)):
        with pytest.raises(ValueError, match=rf"{name}= is given, .* under torch.no_grad"):
            fastgemm.gemm(a, a, **{name: value})


def model():
    torch.manual_seed(0)
    layers = torch.nn.Linear(8, 16), torch.nn.SiLU(), torch.nn.Linear(16, 4, bias=False)
    return torch.nn.Sequential(*layers).to(BF16)


def test_patching_changes_the_products_and_nothing_else():
    net, x = model(), integers(3, 8, dtype=BF16)
    parameters = dict(net.named_parameters())
    expected = net(x)
    with ft.patch(net) as patch:
        assert [type(m) for m in net] == [ft.Linear, torch.nn.SiLU, ft.Linear]
        assert len(patch.layers) == 2
        assert all(parameters[name] is p for name, p in net.named_parameters())
        y = net(x)
        torch.testing.assert_close(y, expected)
        names = set()
        node = [y.grad_fn]
        while node:
            names.add(type(node[0]).__name__)
            node += [n for n, _ in node.pop(0).next_functions if n]
        assert "RecordedLinearBackward" in names
        compiled = torch.compile(net, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x), expected)
    assert [type(m) for m in net] == [torch.nn.Linear, torch.nn.SiLU, torch.nn.Linear]
    assert torch.equal(net(x), expected)


@pytest.mark.parametrize("shape", [(8,), (5, 8), (2, 3, 8), (0, 8)])
@pytest.mark.parametrize("with_bias", [False, True])
def test_gradients_of_a_linear_layer(shape, with_bias):
    """Of first and second order, and with the layout that the optimizer keeps."""
    x, weight = integers(*shape, grad=True), integers(6, 8, seed=1, grad=True)
    bias = integers(6, seed=2, grad=True) if with_bias else None
    inputs = [t for t in (x, weight, bias) if t is not None]
    wide = [t.detach().double().requires_grad_() for t in inputs]
    y, expected = ft.linear(x, weight, bias), torch.nn.functional.linear(*wide)
    assert type(y.grad_fn).__name__ == "RecordedLinearBackward"
    assert torch.equal(y.double(), expected)
    grad = integers(*y.shape, seed=3)
    grads = torch.autograd.grad(y, inputs, grad, create_graph=True)
    wide_grads = torch.autograd.grad(expected, wide, grad.double(), create_graph=True)
    for g, w in zip(grads, wide_grads, strict=True):
        assert torch.equal(g.double(), w)
    assert grads[1].is_contiguous()
    second = torch.autograd.grad(grads[0].float().sum(), weight)
    assert torch.equal(second[0].double(), torch.autograd.grad(wide_grads[0].sum(), wide[1])[0])


def test_patching_by_name_and_of_a_single_layer():
    net = model()
    patch = ft.patch(net, where=lambda name, layer: name == "2")
    assert [type(m) for m in net] == [torch.nn.Linear, torch.nn.SiLU, ft.Linear]
    patch.undo()
    layer = torch.nn.Linear(4, 4)
    ft.patch(layer)
    assert type(layer) is ft.Linear
    assert layer(torch.ones(2, 4)).dtype == F32, "other dtypes stay torch's"


def test_a_training_step_agrees_with_torch_s():
    x = torch.randn(16, 8, dtype=BF16)
    grads = []
    for patched in (False, True):
        net = model()
        if patched:
            ft.patch(net)
        net(x).float().square().mean().backward()
        grads.append([p.grad for p in net.parameters()])
    for mine, theirs in zip(*grads, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=2e-2, atol=1e-4)
