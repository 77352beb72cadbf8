"""Host time of a warm call, in every framework and from C++, beside what the frameworks take.

    python bench/host_overhead.py --out results/host_overhead.json

A product of 64 x 64 x 64, so that the GPU keeps up. Medians of rounds in which calls take turns.
What is aimed at stands beside what was measured. In jit, products are computed with and without
XLA's CUDA graphs; a run that replays a graph as it is enters fastgemm 0 times.
The C++ part needs a compiler; frameworks that are not installed are left out.
"""

import copy
import functools
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

import fastgemm
from machine import gpu, make_parser, provenance, require_gpu, torch, write

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
HERE = Path(__file__).resolve().parent
SIZE = 64
IN_JIT = 32  # products of one jitted program
RUNS_IN_A_ROW = 20
NO_GRAPHS = {"xla_gpu_enable_command_buffer": ""}  # an option of XLA's compiler

# Microseconds.
TARGETS = {
    ("torch", "gemm, out="): 3.5,
    ("torch", "gemm, new result"): 5.0,
    ("cupy", "gemm, out="): 6.0,
    ("jax", "gemm outside of jit"): 12.0,
}


def torch_calls(dtype):
    a, b, d = (torch.ones(SIZE, SIZE, device="cuda", dtype=getattr(torch, dtype)) for _ in range(3))
    import fastgemm.torch

    prepared = fastgemm.prepare(a, b, out=d)
    layer = fastgemm.torch.Linear(SIZE, SIZE, bias=False, device="cuda", dtype=a.dtype)
    plain = torch.nn.Linear(SIZE, SIZE, bias=False, device="cuda", dtype=a.dtype)
    frozen, plain_frozen = (copy.deepcopy(x).requires_grad_(False) for x in (layer, plain))
    calls = {
        "gemm, out=": lambda: fastgemm.gemm(a, b, out=d),
        "gemm, new result": lambda: fastgemm.gemm(a, b),
        "linear, out=": lambda: fastgemm.linear(a, b, out=d),
        "prepared": prepared,
        "the operator": lambda: torch.ops.fastgemm.gemm(a, b, None, None),
        "torch.mm, out=": lambda: torch.mm(a, b, out=d),
        "torch.mm, new result": lambda: torch.mm(a, b),
        "Linear, frozen": lambda: frozen(a),
        "torch's Linear, frozen": lambda: plain_frozen(a),
        "Linear, recorded by autograd": lambda: layer(a),
        "torch's Linear, recorded by autograd": lambda: plain(a),
    }
    return calls, torch.cuda.synchronize


def cupy_calls(dtype):
    import cupy

    a, b, d = (cupy.ones((SIZE, SIZE), "float16") for _ in range(3))
    calls = {
        "gemm, out=": lambda: fastgemm.gemm(a, b, out=d),
        "gemm, new result": lambda: fastgemm.gemm(a, b),
        "cupy.matmul, out=": lambda: cupy.matmul(a, b, out=d),
        "cupy.matmul, new result": lambda: cupy.matmul(a, b),
    }
    return calls, cupy.cuda.runtime.deviceSynchronize


def jax_calls(dtype):
    import fastgemm.jax
    import jax
    import jax.numpy as jnp

    a = jax.device_put(jnp.ones((SIZE, SIZE), dtype), jax.devices("cuda")[0])
    mine, theirs = jax.jit(fastgemm.jax.gemm), jax.jit(jnp.matmul)
    calls = {
        "gemm outside of jit": lambda: fastgemm.gemm(a, a),
        "a jitted fastgemm.jax.gemm": lambda: mine(a, a),
        "a jitted jnp.matmul": lambda: theirs(a, a),
        "jnp.matmul": lambda: jnp.matmul(a, a),
    }
    return calls, lambda: jax.block_until_ready(mine(a, a))


def jit_products(dtype, rounds):
    """Microseconds of a product, of which one program computes many: of a run of the program alone,
    until all are there, and of runs in a row; and how often a run enters fastgemm."""
    import fastgemm.jax
    import jax
    import jax.numpy as jnp

    def program(product, options=None):
        def run(x, weight):
            for _ in range(IN_JIT):
                x = product(x, weight)
            return x

        return jax.jit(run, compiler_options=options)

    rows, entered = {}, {}
    device = jax.devices("cuda")[0]
    for tokens, width in ((SIZE, SIZE), (16, 4096)):
        x = jax.device_put(jnp.zeros((tokens, width), dtype), device)
        weight = jax.device_put(jnp.ones((width, width), dtype), device)
        programs = {
            "fastgemm.jax.gemm": program(fastgemm.jax.gemm),
            "XLA's dot": program(jnp.matmul),
            "fastgemm.jax.gemm, no graphs": program(fastgemm.jax.gemm, NO_GRAPHS),
            "XLA's dot, no graphs": program(jnp.matmul, NO_GRAPHS),
        }
        shape = f"{tokens} x {width} x {width}"
        for runs, manner in ((1, "alone"), (RUNS_IN_A_ROW, "in a row")):

            def compute(program, runs=runs, x=x, weight=weight):
                for _ in range(runs):
                    d = program(x, weight)
                d.block_until_ready()

            calls = {k: functools.partial(compute, program) for k, program in programs.items()}
            times = take_turns(calls, lambda: None, rounds, 1)
            for k, us in times.items():
                rows.setdefault(shape, {})[f"{k}, {manner}"] = us / runs / IN_JIT
        before = fastgemm.cache_info().hits
        for _ in range(10):
            programs["fastgemm.jax.gemm"](x, weight).block_until_ready()
        entered[shape] = (fastgemm.cache_info().hits - before) / 10
    return rows, entered


def take_turns(calls, synchronize, rounds, calls_in_round=200):
    samples = {name: [] for name in calls}
    for round_number in range(rounds + 1):
        for name, call in calls.items():
            synchronize()
            begin = time.perf_counter()
            for _ in range(calls_in_round):
                call()
            elapsed = time.perf_counter() - begin
            if round_number > 0:
                samples[name].append(elapsed * 1e6 / calls_in_round)
    return {name: median(values) for name, values in samples.items()}


def cpp_launches():
    """What launches.cpp prints, built against the installed package."""
    package = Path(fastgemm.cmake_dir()).parents[2]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "launches"
        build = ["c++", "-O2", "-std=c++17", HERE / "launches.cpp", "-o", program]
        build += [f"-I{package / 'include'}", f"-L{package / 'lib'}", "-lfastgemm", "-ldl"]
        subprocess.run([*build, f"-Wl,-rpath,{package / 'lib'}"], check=True)
        nvrtc = {"FASTGEMM_NVRTC": fastgemm.nvrtc_info().path}
        output = subprocess.check_output([program], env={**os.environ, **nvrtc}, text=True)
    return json.loads(output)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=31)
    options = parser.parse_args()
    require_gpu()
    results = {**provenance("host_overhead", options), **gpu(), "us": {}, "not_run": {}}
    for name, make in {"torch": torch_calls, "cupy": cupy_calls, "jax": jax_calls}.items():
        try:
            calls, synchronize = make(options.dtype)
            results["us"][name] = take_turns(calls, synchronize, options.rounds)
            if name == "jax":
                in_jit = jit_products(options.dtype, options.rounds)
                results["in_jit_us"], results["in_jit_entered"] = in_jit
        except (ImportError, RuntimeError) as error:
            results["not_run"][name] = f"{type(error).__name__}: {error}"
    try:
        results["us"]["C++"] = cpp_launches()
    except (OSError, subprocess.CalledProcessError) as error:
        results["not_run"]["C++"] = str(error)
    for name, times in results["us"].items():
        for call, us in times.items():
            target = TARGETS.get((name, call))
            aim = f"   aim {target:5.1f}" if target else ""
            print(f"{name:6} {call:40} {us:8.2f} us{aim}")
    for shape, times in results.get("in_jit_us", {}).items():
        for call, us in times.items():
            print(f"in jit {shape:20} {call:38} {us:8.2f} us")
        entered = results["in_jit_entered"][shape]
        print(f"in jit {shape:20} a run of {IN_JIT} products enters fastgemm {entered} times")
    for name, reason in results["not_run"].items():
        print(f"{name}: not run ({reason})")
    write(results, options.out)


if __name__ == "__main__":
    main()
