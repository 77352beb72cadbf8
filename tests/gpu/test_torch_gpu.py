"""The PyTorch operator on a GPU: gradients, compile, autocast, prepared calls, graphs, models."""

import gc
import resource
import sys

import fastgemm
import pytest
from frameworks import MAKERS
from native import ROOT

sys.path.append(str(ROOT / "bench"))
pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def torch():
    return MAKERS["torch"]().torch


@pytest.fixture(scope="module")
def ft(torch):
    import fastgemm.torch

    return fastgemm.torch


@pytest.fixture
def integers(torch):
    def make(*shape, dtype=torch.float16, seed=0, grad=False):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randint(-2, 3, shape, generator=generator).to("cuda", dtype)
        return x.requires_grad_(grad)

    return make


SHAPES = [
    ((64, 128), (128, 48)),
    ((128,), (128, 48)),
    ((64, 128), (128,)),
    ((3, 64, 128), (128, 48)),
    ((3, 64, 128), (3, 128, 48)),
    ((64, 128), (3, 128, 48)),
    ((2, 1, 33, 70), (3, 70, 17)),
]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("a_shape", "b_shape"), SHAPES)
def test_gradients_are_exact(torch, integers, a_shape, b_shape, dtype):
    dtype = getattr(torch, dtype)
    a, b = integers(*a_shape, dtype=dtype, grad=True), integers(*b_shape, dtype=dtype, seed=1)
    b.requires_grad_()
    d = fastgemm.gemm(a, b, out_dtype="float32")
    wide = [x.detach().double().requires_grad_() for x in (a, b)]
    expected = torch.matmul(*wide)
    assert torch.equal(d.double(), expected)
    grad = integers(*d.shape, dtype=torch.float32, seed=2)
    d.backward(grad)
    expected.backward(grad.double())
    assert torch.equal(a.grad, wide[0].grad.to(dtype))
    assert torch.equal(b.grad, wide[1].grad.to(dtype))


@pytest.mark.filterwarnings("ignore:.*not a double precision")
def test_gradcheck(torch, ft, integers):
    operands = [integers(*s, seed=i, grad=True) for i, s in enumerate([(3, 8), (8, 2), (3, 2)])]

    def product(a, b, c):
        return ft.gemm(a, b, c=c, alpha=0.5, beta=2.0)

    options = {"eps": 0.5, "atol": 1e-3, "rtol": 0, "nondet_tol": 0.0}
    assert torch.autograd.gradcheck(product, operands, **options)
    grad = integers(3, 2, seed=3, grad=True)
    assert torch.autograd.gradgradcheck(product, operands, grad, **options)


@pytest.mark.parametrize(("a_shape", "b_shape"), SHAPES)
def test_opcheck(torch, ft, integers, a_shape, b_shape):
    a, b = integers(*a_shape, grad=True), integers(*b_shape, seed=1, grad=True)
    torch.library.opcheck(torch.ops.fastgemm.gemm.default, (a, b, None, None))


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled(torch, ft, integers, mode):
    torch._dynamo.reset()
    x, weight = integers(16, 128, dtype=torch.bfloat16), integers(48, 128, dtype=torch.bfloat16)
    bias = integers(48, dtype=torch.bfloat16, seed=1)

    def layer(x, weight, bias):
        return torch.relu(fastgemm.linear(x, weight, bias)) * 2

    compiled = torch.compile(layer, fullgraph=True, mode=mode)
    with torch.no_grad():
        exact = torch.nn.functional.linear(x.double(), weight.double(), bias.double())
        expected = 2 * torch.relu(exact).to(x.dtype)
        for _ in range(4):
            assert torch.equal(compiled(x, weight, bias), expected)


def test_bias_and_activation_are_part_of_the_kernel(torch, ft, integers):
    torch._dynamo.reset()
    x, weight, bias = integers(16, 128), integers(48, 128, seed=1), integers(48, seed=2)
    expected = torch.relu(x.double() @ weight.double().T + bias.double()).half()
    compiled = torch.compile(ft.linear, fullgraph=True)
    for layer in (fastgemm.linear, ft.linear, compiled):
        assert torch.equal(layer(x, weight, bias, activation="relu"), expected)
    weight.requires_grad_()
    recorded = fastgemm.linear(x, weight, bias, activation="relu")
    assert torch.equal(recorded, expected)
    recorded.sum().backward()
    assert torch.equal(weight.grad, ((expected > 0).double().T @ x.double()).half())


def test_compiled_training(torch, ft, integers):
    torch._dynamo.reset()
    grads = []
    for product in (fastgemm.linear, torch.nn.functional.linear):
        x, weight = integers(16, 128, grad=True), integers(48, 128, seed=1, grad=True)
        step = torch.compile(lambda x, w, f=product: (f(x, w).float() ** 2).sum(), fullgraph=True)
        step(x, weight).backward()
        grads.append((x.grad, weight.grad))
    for mine, theirs in zip(*grads, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_autocast(torch, ft):
    x, layer = torch.randn(16, 128, device="cuda"), ft.Linear(128, 48, device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        y = layer(x)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), torch.nn.Linear.forward(layer, x), rtol=0.05, atol=0.05)
    y.sum().backward()
    assert layer.weight.grad.dtype == torch.float32


def test_recorded_products_run_fastgemm(torch, ft, integers):
    a = integers(64, 64, grad=True)
    fastgemm.gemm(a, a.detach()).sum().backward()
    before = fastgemm.cache_info().hits
    fastgemm.gemm(a, a.detach()).sum().backward()
    assert fastgemm.cache_info().hits == before + 2


def block(torch, tokens=24):
    from llama_block import Size, TorchBlock

    torch.manual_seed(0)
    size = Size(hidden=256, heads=8, kv_heads=2, inner=704, context=40)
    model = TorchBlock(size, 3, device="cuda", dtype=torch.bfloat16)
    return model, torch.randn(3, tokens, 256, device="cuda", dtype=torch.bfloat16)


def test_a_llama_block_gives_what_it_gave(torch, ft):
    model, x = block(torch)
    with torch.no_grad():
        expected = model(x)
        with ft.patch(model) as patch:
            assert len(patch.layers) == 7
            torch.testing.assert_close(model(x), expected, rtol=0.02, atol=0.02)
            compiled = torch.compile(model, fullgraph=True)
            torch.testing.assert_close(compiled(x), expected, rtol=0.02, atol=0.02)


def test_a_training_step_of_a_llama_block_has_the_same_gradients(torch, ft):
    grads = []
    for patched in (False, True):
        model, x = block(torch)
        if patched:
            ft.patch(model)
        model(x).float().square().mean().backward()
        grads.append({name: p.grad for name, p in model.named_parameters()})
    for name, theirs in grads[0].items():
        scale = theirs.float().abs().max()
        error = (grads[1][name].float() - theirs.float()).abs().max()
        assert error < 0.02 * scale, f"{name}: {error} of {scale}"


def test_a_llama_block_decodes_under_a_cuda_graph(torch, ft):
    from llama_block import torch_graph

    model, x = block(torch, tokens=1)
    model.requires_grad_(False)
    expected = model(x)
    with ft.patch(model):
        graph, result = torch_graph(model, x)
        for scale in (1, 0.5):
            x.mul_(scale)
            graph.replay()
            torch.testing.assert_close(result, model(x), rtol=0, atol=0)
    x.mul_(2)
    torch.testing.assert_close(model(x), expected, rtol=0, atol=0)


def test_prepared_calls_follow_the_current_stream(torch, integers):
    a, b, d = integers(64, 64), integers(64, 64, seed=1), integers(64, 64)
    prepared = fastgemm.prepare(a, b, out=d)
    for _ in range(100):
        with torch.cuda.stream(torch.cuda.Stream()):
            a.fill_(float("nan"))
            torch.cuda._sleep(100_000)
            a.fill_(1)
            assert prepared() is d
            assert torch.equal(d, b.sum(0).expand(64, 64))
    other = integers(64, 64, seed=2)
    prepared.rebind(b=other)
    assert torch.equal(prepared(), other.sum(0).expand(64, 64))
    assert torch.equal(fastgemm.prepare(a, b)(), a @ b)


def test_prepared_calls_are_captured(torch, integers):
    a, b = integers(64, 64), integers(64, 64, seed=1)
    prepared = fastgemm.prepare(a, b)
    fastgemm.clear_cache()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        prepared()
    out = prepared.out
    del prepared
    fastgemm.clear_cache()
    a.mul_(2)
    graph.replay()
    assert torch.equal(out, a @ b)


COLD = fastgemm.GemmConfig(family="sm80", block_m=64, block_n=32, block_k=32, num_stages=3)


def test_a_cold_call_in_a_capture_is_refused_and_the_capture_goes_on(torch, integers):
    fastgemm.clear_cache()
    a, b, d = integers(64, 64), integers(64, 64, seed=1), integers(64, 64)
    fastgemm.gemm(a, b, out=d)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fastgemm.gemm(a, b, out=d)
        with pytest.raises(fastgemm.ColdCallError, match=r"Warm up first.*prepare\(\)"):
            fastgemm.gemm(a, b, out=d, config=COLD)
    a.mul_(2)
    graph.replay()
    assert torch.equal(d, a @ b)
    assert torch.equal(fastgemm.gemm(a, b, config=COLD), a @ b)


def test_a_cold_call_in_a_capture_of_cupy_is_refused():
    cupy = MAKERS["cupy"]().cupy
    fastgemm.clear_cache()
    a = cupy.ones((64, 64), "float16")
    d = cupy.zeros_like(a)
    cupy.cuda.runtime.deviceSynchronize()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        fastgemm.gemm(a, a, out=d)
        stream.synchronize()
        d[...] = 0
        stream.begin_capture()
        fastgemm.gemm(a, a, out=d)
        with pytest.raises(fastgemm.ColdCallError):
            fastgemm.gemm(a, a, out=d, config=COLD)
        graph = stream.end_capture()
        graph.launch(stream)
        stream.synchronize()
    assert (d == 64).all()


def test_strict_mode(torch, integers):
    fastgemm.clear_cache(disk=True)
    a = integers(64, 64)
    fastgemm.set_strict(True)
    try:
        with pytest.raises(fastgemm.ColdCallError, match="strict"):
            fastgemm.gemm(a, a, config=COLD)
        fastgemm.prepare(a, a, config=COLD)
        assert torch.equal(fastgemm.gemm(a, a, config=COLD), a @ a)
    finally:
        fastgemm.set_strict(False)


def test_many_calls_leave_nothing_behind(torch, integers):
    a, b, d = integers(64, 64), integers(64, 64), integers(64, 64)
    prepared = fastgemm.prepare(a, b, out=d)

    def calls(count):
        for _ in range(count):
            fastgemm.gemm(a, b)
            fastgemm.gemm(a, b, out=d)
            prepared()
        torch.cuda.synchronize()
        gc.collect()

    calls(2000)
    memory = torch.cuda.memory_allocated()
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    calls(33_000)
    assert torch.cuda.memory_allocated() == memory
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - host < 2048
