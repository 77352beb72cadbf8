"""What the compiler makes of the planner's picks: milliseconds, registers, spills, code size.

python bench/compile_times.py --arch sm_80,sm_90,sm_120        # needs NVRTC, no GPU
"""

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path

import fastgemm
from shapes import SUITES

ARCHS = "sm_75,sm_80,sm_86,sm_89,sm_90,sm_100,sm_103,sm_120,sm_121"


def compile_picks(arch, options):
    """One row for each different kernel that the planner picks for the suite on `arch`."""
    rows = {}
    for shape in SUITES[options.suite]:
        plan = fastgemm.plan(
            shape.m, shape.n, shape.k, dtype=options.dtype, layout=options.layout, arch=arch
        )
        kernel = fastgemm.compile(plan)
        if kernel.source in rows:
            continue
        tile = plan.config
        rows[kernel.source] = {
            "arch": arch,
            "first_for": f"{shape.m}x{shape.n}x{shape.k}",
            "config": f"{tile.family} {tile.block_m}x{tile.block_n}x{tile.block_k}, "
            f"{tile.num_stages} stages, {plan.threads} threads",
            "compile_ms": kernel.compile_ms,
            "registers": kernel.registers,
            "spill_bytes": kernel.spill_bytes,
            "shared_bytes": kernel.shared_bytes,
            "cubin_bytes": len(kernel.cubin),
        }
    return list(rows.values())


def print_rows(rows):
    for row in rows:
        print(
            f"{row['arch']:7} {row['compile_ms']:6.0f} ms  {row['registers']:3} registers"
            f"  {row['spill_bytes']:3} B spilled  {row['cubin_bytes']:6} B of cubin"
            f"  {row['config']} ({row['first_for']})",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default=ARCHS, help="comma-separated")
    parser.add_argument("--suite", choices=SUITES, default="all")
    parser.add_argument("--dtype", choices=("bfloat16", "float16"), default="float16")
    parser.add_argument("--layout", choices=("nn", "nt", "tn", "tt"), default="nt")
    parser.add_argument("--out", help="also write the rows as JSON")
    options = parser.parse_args()

    rows = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["FASTGEMM_CACHE_DIR"] = cache
        for arch in options.arch.split(","):
            rows += compile_picks(arch, options)
            print_rows(row for row in rows if row["arch"] == arch)
    times = [row["compile_ms"] for row in rows]
    spilled = sum(row["spill_bytes"] > 0 for row in rows)
    print(
        f"{len(rows)} kernels: median {statistics.median(times):.0f} ms, most {max(times):.0f} ms,"
        f" {spilled} with spills"
    )
    if options.out:
        Path(options.out).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
