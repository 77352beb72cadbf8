"""Ablation on this GPU: what each knob of the planner's own pick is worth, in percent of time.

python bench/knobs.py --dtype float16
"""

import argparse
import json
from pathlib import Path

import fastgemm
import torch
from machine import ceilings, machine
from timing import DTYPES, Operands, microseconds, worst_error

SHAPES = [(4096, 4096, 4096), (512, 4096, 14336), (1000, 1000, 1000)]
FIELDS = ("block_m", "block_n", "block_k", "warp_m", "warp_n", "num_stages")
OFF = {
    "no swizzle": {"swizzle": False},
    "1 stage": {"num_stages": 1},
    "2 stages": {"num_stages": 2},
    "no raster groups": {"raster_group": 0},
    "stores from registers": {"staged_stores": False},
}


def picked(shape, options):
    """The planner's pick with every field fixed, so that a variant differs in its knob alone."""
    kernel = fastgemm.plan(*shape, dtype=options.dtype, layout=options.layout, device=0).kernel
    fields = (*FIELDS, "swizzle", "raster_group", "staged_stores")
    return fastgemm.GemmConfig(
        family=kernel.family, **{name: getattr(kernel, name) for name in fields}
    )


def with_config(config):
    def call(a, b, d):
        fastgemm.gemm(a, b, out=d, config=config)

    return call


def ablate(shape, options, ceiling):
    operands = Operands(*shape, options.dtype, options.layout)
    base = picked(shape, options)
    configs = {"as planned": base, **{name: base.replace(**off) for name, off in OFF.items()}}
    calls = {name: with_config(config) for name, config in configs.items()}
    for name, call in calls.items():
        error = worst_error(call, operands)
        if not error <= 1:
            raise SystemExit(f"{name} is wrong on {shape}: {error:.2f} times the bound")
    times = microseconds(calls, operands, operands.flops / ceiling["flops_per_us"], options.rounds)
    print(f"{shape[0]} x {shape[1]} x {shape[2]}: {base}")
    for name, us in times.items():
        print(f"  {name:22} {us:9.2f} us  {100 * (us / times['as planned'] - 1):+7.1f} %")
    return {"shape": shape, "config": str(base), "us": times}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", choices=DTYPES, default="bfloat16")
    parser.add_argument("--layout", choices=("nn", "nt", "tn", "tt"), default="nt")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", help="also write the times as JSON")
    options = parser.parse_args()
    results = {**machine(), "dtype": options.dtype, "layout": options.layout}
    results["rows"] = [ablate(shape, options, ceilings()) for shape in SHAPES]
    torch.cuda.synchronize()
    if options.out:
        Path(options.out).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
