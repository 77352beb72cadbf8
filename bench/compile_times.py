"""What the compiler makes of the planner's picks: milliseconds, registers, spills, code size.

python bench/compile_times.py --arch sm_80,sm_90,sm_120        # needs NVRTC, no GPU
"""

import os
import statistics

import fastgemm
from machine import make_parser, provenance, write
from shapes import SUITES

ARCHS = "sm_75,sm_80,sm_86,sm_89,sm_90,sm_100,sm_103,sm_120,sm_121"


def compile_picks(arch, options):
    """One row for each different kernel that the planner picks for the suite on `arch`."""
    rows = {}
    for shape in SUITES[options.suite]:
        dtype = "float16" if arch == "sm_75" else options.dtype
        plan = fastgemm.plan(
            shape.m, shape.n, shape.k, dtype=dtype, layout=options.layout, arch=arch
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
    parser = make_parser(__doc__)
    parser.add_argument("--arch", default=ARCHS, help="comma-separated")
    parser.add_argument("--suite", choices=SUITES, default="all")
    options = parser.parse_args()

    # No cache on disk: neither fastgemm's nor the one that NVRTC keeps where there is a driver.
    os.environ.update(FASTGEMM_CACHE_MB="0", CUDA_CACHE_DISABLE="1")
    results = provenance("compile_times", options)
    try:
        results["nvrtc"] = fastgemm.nvrtc_info().version
    except fastgemm.CompileError as error:
        raise SystemExit(str(error).splitlines()[0]) from None
    unlisted = fastgemm.GemmConfig(raster_group=3)  # NVRTC's own start is not what is measured
    fastgemm.compile(fastgemm.plan(64, 64, 64, arch="sm_80", config=unlisted))
    results["rows"] = []
    for arch in options.arch.split(","):
        rows = compile_picks(arch, options)
        print_rows(rows)
        results["rows"] += rows
    times = [row["compile_ms"] for row in results["rows"]]
    spilled = sum(row["spill_bytes"] > 0 for row in results["rows"])
    print(
        f"{len(times)} kernels: median {statistics.median(times):.0f} ms, most {max(times):.0f} ms,"
        f" {spilled} with spills"
    )
    write(results, options.out)


if __name__ == "__main__":
    main()
