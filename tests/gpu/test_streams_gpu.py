"""gemm() on the streams of its callers: order, asynchrony, memory, threads, CUDA graphs."""

import gc

import fastgemm
import numpy as np
import pytest
from frameworks import HALF, MAKERS, exact, integers
from threads import in_threads

pytestmark = pytest.mark.gpu


@pytest.fixture
def torch():
    return MAKERS["torch"]().torch


@pytest.fixture(params=["torch", "cupy"])
def streaming(request):
    """The frameworks that have a current stream."""
    return MAKERS[request.param]()


def test_work_is_ordered_after_the_producer_on_a_side_stream(streaming):
    """a is NaN until a spinning kernel has ended: a product that does not wait shows it."""
    ones = np.ones((64, 64), HALF)
    b = streaming.put(ones)
    streaming.get(fastgemm.gemm(b, b))
    for i in range(200):
        a = streaming.put(np.full((64, 64), np.nan, HALF))
        streaming.get(a)
        with streaming.side_stream():
            streaming.spin(300_000 if i else 50_000_000)
            streaming.fill(a, 1)
            d = fastgemm.gemm(a, b)
            result = streaming.get(d)
        assert (result == 64).all(), f"repeat {i}"


def test_an_explicit_stream_is_the_one_that_is_used(torch):
    b = torch.ones(64, 64, device="cuda", dtype=torch.float16)
    fastgemm.gemm(b, b)
    for as_argument in (lambda s: s, lambda s: s.cuda_stream):
        a = torch.full_like(b, float("nan"))
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(50_000_000)
            a.fill_(1)
        d = fastgemm.gemm(a, b, stream=as_argument(stream))
        assert not stream.query()
        stream.synchronize()
        assert (d == 64).all()


def test_a_call_does_not_wait_for_the_gpu(streaming):
    a = streaming.put(np.ones((64, 64), HALF))
    streaming.get(fastgemm.gemm(a, a))
    stream = streaming.side_stream()
    with stream:
        streaming.spin(400_000_000)
        d = fastgemm.gemm(a, a)
        assert not streaming.is_done(stream)
        assert (streaming.get(d) == 64).all()


@pytest.mark.parametrize("other", ["cupy", "jax"])
def test_operands_of_two_frameworks_are_ordered_both_ways(torch, other):
    second = MAKERS[other]()
    for _ in range(20):
        a = torch.full((64, 64), float("nan"), device="cuda", dtype=torch.float16)
        torch.cuda.synchronize()
        b = second.put(np.ones((64, 64), HALF))
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(3_000_000)
            a.fill_(1)
            d = fastgemm.gemm(b, a)
        assert (second.get(d) == 64).all()
        del b
        assert (second.get(d + d) == 128).all()


def test_jax_results_can_be_used_at_once_and_operands_dropped():
    jax = MAKERS["jax"]()
    multiply = jax.jax.jit(lambda x: x * 2)
    host = integers((256, 256))
    for i in range(30):
        x = multiply(jax.put(host))
        d = fastgemm.gemm(x, x)
        del x
        scratch = [multiply(jax.put(np.full((256, 256), i, HALF))) for _ in range(3)]
        np.testing.assert_array_equal(jax.get(multiply(d)), (8 * exact(host, host)).astype(HALF))
        del scratch


def test_dropped_results_go_back_to_their_pool(torch):
    a = torch.ones(512, 512, device="cuda", dtype=torch.float16)
    fastgemm.gemm(a, a)
    before = torch.cuda.memory_allocated()
    for _ in range(1000):
        fastgemm.gemm(a, a)
    assert torch.cuda.memory_allocated() == before


def test_dropped_results_go_back_to_cupys_pool():
    cupy = MAKERS["cupy"]().cupy
    a = cupy.ones((512, 512), "float16")
    fastgemm.gemm(a, a)
    gc.collect()
    before = cupy.get_default_memory_pool().used_bytes()
    for _ in range(1000):
        fastgemm.gemm(a, a)
    assert cupy.get_default_memory_pool().used_bytes() == before


@pytest.mark.parametrize("name", ["numpy", "jax"])
def test_dropped_results_leave_the_gpus_memory_as_it_was(name, torch):
    framework = MAKERS[name]()
    a = framework.put(integers((2048, 2048)))
    for _ in range(3):
        framework.get(fastgemm.gemm(a, a))

    def growth():
        gc.collect()
        before = torch.cuda.mem_get_info()[0]
        for _ in range(50):  # of 8 MB
            fastgemm.gemm(a, a)
        gc.collect()
        return before - torch.cuda.mem_get_info()[0]

    # Other processes take memory meanwhile: that of the GPU is counted, not of this process.
    assert min(growth() for _ in range(4)) < 64 << 20


def test_threads_on_their_own_streams(torch):
    wrong = []

    def work(seed):
        a, b = integers((96, 64), seed=seed), integers((64, 80), seed=seed + 100)
        with torch.cuda.stream(torch.cuda.Stream()):
            left, right = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
            for _ in range(200):
                d = fastgemm.gemm(left, right)
            if not np.array_equal(d.cpu().numpy(), exact(a, b)):
                wrong.append(seed)

    in_threads(8, work)
    assert not wrong


def test_warmed_calls_are_captured_and_replayed(torch):
    a = torch.ones(64, 64, device="cuda", dtype=torch.float16)
    out = torch.empty_like(a)
    fastgemm.gemm(a, a, out=out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        fastgemm.gemm(a, a, out=out)
        new = fastgemm.gemm(out, a)
    for value in (1, 2, 3):
        a.fill_(value / 8)
        out.fill_(float("nan"))
        graph.replay()
        assert (out == 64 * (value / 8) ** 2).all()
        assert (new == 64 * 64 * (value / 8) ** 3).all()
