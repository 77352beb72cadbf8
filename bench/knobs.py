"""Ablation on this GPU: what each knob of the planner's own pick is worth, in percent of time.

python bench/knobs.py --dtype float16
"""

import argparse
import json
from pathlib import Path

import fastgemm
from machine import ceilings, machine
from timing import DTYPES, Operands, microseconds, worst_error

SHAPES = [(4096, 4096, 4096), (512, 4096, 14336), (1000, 1000, 1000)]
OFF = {
    "no swizzle": {"swizzle": False},
    "1 stage": {"num_stages": 1},
    "2 stages": {"num_stages": 2},
    "no raster groups": {"raster_group": 0},
    "stores from registers": {"staged_stores": False},
    "no multicast": {"multicast": False},
    "no clusters": {"cluster_m": 1, "cluster_n": 1, "multicast": False},
}


def with_config(config):
    def call(a, b, d):
        fastgemm.gemm(a, b, out=d, config=config)

    return call


def variants(base):
    """The planner's pick with every field fixed, and the same with one knob turned off."""
    configs = {"as planned": base}
    for name, off in OFF.items():
        if any(getattr(base, field) != value for field, value in off.items()):
            configs[name] = base.replace(**off)
    return configs


def ablate(shape, options, ceiling):
    operands = Operands(*shape, options.dtype, options.layout)
    plan = fastgemm.plan(*shape, dtype=options.dtype, layout=options.layout, device=0)
    print(f"{shape[0]} x {shape[1]} x {shape[2]}: {plan.config}")
    calls = {}
    for name, config in variants(plan.config).items():
        try:
            error = worst_error(with_config(config), operands)
        except ValueError as refusal:
            print(f"  {name:22} {refusal}")
            continue
        if not error <= 1:
            raise SystemExit(f"{name} is wrong on {shape}: {error:.2f} times the bound")
        calls[name] = with_config(config)
    times = microseconds(calls, operands, operands.flops / ceiling["flops_per_us"], options.rounds)
    for name, us in times.items():
        print(f"  {name:22} {us:9.2f} us  {100 * (us / times['as planned'] - 1):+7.1f} %")
    return {"shape": shape, "config": str(plan.config), "us": times}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", choices=DTYPES, default="bfloat16")
    parser.add_argument("--layout", choices=("nn", "nt", "tn", "tt"), default="nt")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", help="also write the times as JSON")
    options = parser.parse_args()
    results = {**machine(), "dtype": options.dtype, "layout": options.layout}
    results["rows"] = [ablate(shape, options, ceilings()) for shape in SHAPES]
    if options.out:
        Path(options.out).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
