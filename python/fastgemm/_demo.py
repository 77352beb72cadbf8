"""The demo: one product planned, compiled, run, compared with a float64 reference and timed."""

import importlib.util
import time

import fastgemm

from ._cli import resources

REPEATS = 20
GPU_SIZE, EMULATOR_SIZE = 2048, 512


def run(size: tuple[int, int, int] | None) -> int:
    """Without a GPU the kernel is an H100's, run by the emulator. 1 where the result is wrong."""
    gpus = fastgemm.devices()
    m, n, k = size or 3 * (GPU_SIZE if gpus else EMULATOR_SIZE,)
    plan = fastgemm.plan(m, n, k, dtype="float16", arch=gpus[0] if gpus else "H100")
    print(plan.explain())
    print(resources(fastgemm.compile(plan)))
    if not importlib.util.find_spec("numpy"):
        print("Not run: the inputs and the reference need NumPy (pip install numpy).")
        return 0

    import numpy

    generator = numpy.random.default_rng(0)
    a = generator.standard_normal((m, k), numpy.float32).astype(numpy.float16)
    weight = generator.standard_normal((n, k), numpy.float32).astype(numpy.float16)
    d = run_on_gpu(a, weight, gpus[0]) if gpus else run_on_emulator(a, weight)

    a, b, d = (x.astype(numpy.float64) for x in (a, weight.T, d))
    reference = a @ b
    error = numpy.abs(d - reference)
    rounding = numpy.abs(reference) * 2.0**-11 + 2.0**-25
    bound = rounding + k * 2.0**-24 * (numpy.abs(a) @ numpy.abs(b))
    right = bool((error <= bound).all())
    largest = f"{error.max(initial=0):.3g} where values reach {abs(reference).max(initial=0):.3g}"
    print(f"{'right everywhere' if right else 'WRONG'}, largest error {largest}")
    return 0 if right else 1


def run_on_emulator(a, weight):
    d, report = fastgemm.emulate(a, weight.T, arch="H100")
    print("No GPU here: the kernel was run on the CPU, by the emulator of the device code.")
    print(report)
    return d


def run_on_gpu(a, weight, gpu):
    to_gpu, to_host, measure, through = pick_framework()
    gpu_a, gpu_weight = to_gpu(a), to_gpu(weight)
    d = to_host(fastgemm.gemm(gpu_a, gpu_weight.T))
    microseconds = measure(lambda: fastgemm.gemm(gpu_a, gpu_weight.T))
    (m, k), n = a.shape, weight.shape[0]
    print(f"run through {through} on {gpu.name}")
    print(f"{microseconds:.1f} us, {2e-6 * m * n * k / microseconds:.1f} TFLOP/s")
    return d


def pick_framework():
    """How arrays get to the GPU and back, how a call is timed (in microseconds), and its name."""
    if importlib.util.find_spec("torch"):
        import torch

        if torch.cuda.is_available():
            return (
                (lambda x: torch.from_numpy(x).cuda()),
                (lambda x: x.cpu().numpy()),
                time_torch,
                "PyTorch",
            )
    if importlib.util.find_spec("cupy"):
        import cupy

        return cupy.asarray, cupy.asnumpy, time_cupy, "CuPy"
    return lambda x: x, lambda x: x, time_host, "NumPy, with copies to the GPU and back"


def time_torch(call) -> float:
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(REPEATS):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / REPEATS * 1e3


def time_cupy(call) -> float:
    import cupy

    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    for _ in range(REPEATS):
        call()
    end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(start, end) / REPEATS * 1e3


def time_host(call) -> float:
    start = time.perf_counter()
    for _ in range(REPEATS):
        call()
    return (time.perf_counter() - start) / REPEATS * 1e6
