"""What the kernels that the planner considers take on this GPU, each forced by its config.

    python bench/candidates.py --out candidates.json

The cost models (src/cost_*.cpp) are fitted to these numbers, and tests/test_cost_model.py holds the
planner's picks against them. Of every product: the kernels that are predicted to be the fastest,
and some of the others, chosen by chance.
"""

import json
import math
import os
import random
from concurrent.futures import ThreadPoolExecutor
from statistics import geometric_mean

import fastgemm
from machine import ceilings, gpu, make_parser, provenance, require_gpu, torch
from providers import PROVIDERS
from shapes import SUITES
from timing import Operands, microseconds, worst_error

# What tells one candidate from another; the rest of a config follows from it.
TILE = ("family", "block_m", "block_n", "block_k", "warp_m", "warp_n", "num_stages")
SHARED = ("split_k", "swap_ab", "cluster_m", "cluster_n", "cluster_k")
FIELDS = (*TILE, *SHARED, "repack_a", "repack_b", "shift_a", "shift_b", "ping_pong")


def fields_of(config):
    return tuple(getattr(config, name) for name in FIELDS)


def planned(shape, options, config=None):
    return fastgemm.plan(
        *shape[1:], dtype=options.dtype, layout=options.layout, device=0, config=config
    )


def chosen(shape, options):
    """The fields of the candidates to measure, the planner's pick first."""
    plan = planned(shape, options)
    able = [c for c in plan.considered if not c.refused]
    near = [c for c in able if c.cost["total_us"] < 2 * plan.cost["total_us"]]
    best, rest = near[: options.best], near[options.best :]
    dice = random.Random(repr(shape))
    best += dice.sample(rest, min(options.others, len(rest)))
    return list(dict.fromkeys(fields_of(c.config) for c in best))


def compile_one(job):
    shape, fields, options = job
    config = fastgemm.GemmConfig(**dict(zip(FIELDS, fields, strict=True)))
    fastgemm.compile(planned(shape, options, config))


def call_with(fields):
    config = fastgemm.GemmConfig(**dict(zip(FIELDS, fields, strict=True)))
    return lambda a, b, d: fastgemm.gemm(a, b, out=d, config=config)


def measure(shape, kernels, options, ceiling):
    operands = Operands(*shape[1:], options.dtype, options.layout)
    calls = {"torch": PROVIDERS["torch"](), **{fields: call_with(fields) for fields in kernels}}
    for fields, call in calls.items():
        if not (error := worst_error(call, operands)) <= 1:
            raise SystemExit(f"{fields} is wrong on {shape}: {error:.2f} times the bound")
    us = microseconds(calls, operands, operands.floor_us(ceiling), options.rounds)
    times = {fields: us[fields] for fields in kernels}
    pick, best = times[kernels[0]], min(times.values())
    print(
        f"{'x'.join(map(str, shape[1:])):18} torch {us['torch']:8.2f} us  pick {pick:8.2f}"
        f"  best {best:8.2f} of {len(times)}",
        flush=True,
    )
    return {
        **shape._asdict(),
        "torch_us": round(us["torch"], 3),
        "measured": [[*fields, round(t, 3)] for fields, t in times.items()],
    }


def write_rows(results, path):
    """A line for each product."""
    rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in results["rows"])
    text = json.dumps({**results, "columns": [*FIELDS, "us"], "rows": []}, indent=1)
    path.write_text(text.replace('"rows": []', f'"rows": [\n{rows}\n]') + "\n")


def summary(rows):
    pick = [row["measured"][0][-1] for row in rows]
    best = [min(kernel[-1] for kernel in row["measured"]) for row in rows]
    loss = sum(math.log(p / b) for p, b in zip(pick, best, strict=True)) / len(rows)
    speed = geometric_mean(row["torch_us"] / p for row, p in zip(rows, pick, strict=True))
    return f"{len(rows)} products: picks lose {100 * loss:.1f} %, are {speed:.3f} x torch"


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--suite", choices=SUITES, default="planner")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--best", type=int, default=16)
    parser.add_argument("--others", type=int, default=6)
    parser.add_argument("--part", default="0/1", help="i/n: of every n products the ith")
    options = parser.parse_args()
    require_gpu()
    part, parts = map(int, options.part.split("/"))
    kernels = {shape: chosen(shape, options) for shape in SUITES[options.suite][part::parts]}
    jobs = [(shape, fields, options) for shape, all_of in kernels.items() for fields in all_of]
    with ThreadPoolExecutor(os.cpu_count() // parts) as pool:  # before any is timed
        list(pool.map(compile_one, jobs))
    results = {**provenance("candidates", options), **gpu(), "rows": []}
    for shape, all_of in kernels.items():
        results["rows"].append(measure(shape, all_of, options, ceilings()))
        torch.cuda.empty_cache()
        if options.out:
            write_rows(results, options.out)
    print(summary(results["rows"]))


if __name__ == "__main__":
    main()
