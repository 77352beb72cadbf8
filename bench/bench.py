"""fastgemm against cuBLAS on this GPU: kernel time, share of the floor, host time, first call.

    python bench/bench.py --suite readme --dtype bfloat16 --out results.json
    python bench/table.py results.json          # into the README

The floor of a product is the larger of bytes / bandwidth and flops / peak rate. Both ceilings are
the data sheet's (fastgemm.devices()) unless --read-gbps and --peak-tflops give measured ones.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import geometric_mean, median

from machine import ceilings, gpu, make_parser, provenance, require_gpu, torch, write
from providers import PROVIDERS
from shapes import SUITES
from timing import Operands, microseconds, worst_error

HERE = Path(__file__).resolve().parent


def measure(shape, calls, options, ceiling):
    operands = Operands(shape.m, shape.n, shape.k, options.dtype, options.layout)
    floor = operands.floor_us(ceiling)
    row = {**shape._asdict(), "floor_us": floor, "us": {}, "error": {}, "not_run": {}}
    runnable = {}
    for name, call in calls.items():
        try:
            row["error"][name] = worst_error(call, operands)
            runnable[name] = call
        except (RuntimeError, TypeError, ValueError) as error:
            row["not_run"][name] = f"{type(error).__name__}: {error}"
    row["us"] = microseconds(runnable, operands, floor, options.rounds)
    return row


def host_microseconds(call, dtype, calls_in_batch=200, batches=25):
    """What one call of a small product keeps the host busy for; the GPU's queue never fills."""
    operands = Operands(64, 64, 64, dtype, "nt")
    a, b, d = operands.sets[0]
    samples = []
    for _ in range(batches):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls_in_batch):
            call(a, b, d)
        samples.append((time.perf_counter() - begin) * 1e6 / calls_in_batch)
    return median(samples)


def first_calls():
    """First product of a new process: with an empty disk cache, then from the disk cache."""
    with tempfile.TemporaryDirectory() as cache:
        # Nor may NVRTC take the kernel from the cache that it keeps where there is a driver.
        environment = {**os.environ, "FASTGEMM_CACHE_DIR": cache, "CUDA_CACHE_DISABLE": "1"}
        command = [sys.executable, HERE / "first_call.py"]
        cold, disk = (
            json.loads(subprocess.check_output(command, env=environment, text=True))
            for _ in range(2)
        )
    return {"cold": cold["first_ms"], "disk": disk["first_ms"], "warm": disk["second_ms"]}


def print_row(row):
    cells = [f"{name} {us:9.2f} us" for name, us in row["us"].items()]
    cells += [f"{name} not run ({reason[:60]})" for name, reason in row["not_run"].items()]
    wrong = [name for name, error in row["error"].items() if not error <= 1]
    share = row["floor_us"] / row["us"]["fastgemm"] if "fastgemm" in row["us"] else 0
    print(
        f"{row['family']:8} {row['m']:6} {row['n']:6} {row['k']:6}  " + "  ".join(cells),
        f" share of floor {share:.2f}",
        f"  WRONG: {', '.join(wrong)}" if wrong else "",
        flush=True,
    )


def print_summary(rows):
    for peer in ("torch", "cupy"):
        speed = {
            family: [r["us"][peer] / r["us"]["fastgemm"] for r in rows if r["family"] == family]
            for family in dict.fromkeys(r["family"] for r in rows)
            if all({peer, "fastgemm"} <= r["us"].keys() for r in rows if r["family"] == family)
        }
        for family, values in speed.items():
            print(
                f"{family:8} speed over cuBLAS ({peer}): geomean {geometric_mean(values):.3f},"
                f" worst {min(values):.3f} of {len(values)}"
            )


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--suite", choices=SUITES, default="readme")
    parser.add_argument("--providers", default=",".join(PROVIDERS), help="comma-separated")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--read-gbps", type=float, help="measured read bandwidth, 10^9 bytes/s")
    parser.add_argument("--peak-tflops", type=float, help="measured peak rate, 10^12 flops/s")
    options = parser.parse_args()
    require_gpu()

    calls = {}
    for name in options.providers.split(","):
        try:
            calls[name] = PROVIDERS[name]()
        except ImportError as error:
            print(f"{name}: {error}")
    results = {**provenance("bench", options), **gpu()}
    results["ceilings"] = ceilings(options.read_gbps, options.peak_tflops)
    results["rows"] = []
    for shape in SUITES[options.suite]:
        results["rows"].append(measure(shape, calls, options, results["ceilings"]))
        print_row(results["rows"][-1])
        torch.cuda.empty_cache()
    print_summary(results["rows"])

    results["host_us"] = {
        name: host_microseconds(call, options.dtype)
        for name, call in calls.items()
        if all(name in row["us"] for row in results["rows"])
    }
    results["first_call_ms"] = first_calls()
    print("host time a call, us:", results["host_us"])
    print("first call, ms:", results["first_call_ms"])
    write(results, options.out)


if __name__ == "__main__":
    main()
