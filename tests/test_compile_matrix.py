"""What the planner picks becomes machine code that keeps to its plan, on every architecture and by
every NVRTC: nothing spilled, registers and shared memory as planned, small, wgmma on Hopper."""

import logging
import multiprocessing
import os
import re
import statistics
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import fastgemm
import pytest
from fastgemm import GemmConfig
from fastgemm._nvrtc import folders
from native import need

# m, n, k, layout, and what else plan() takes. Odd extents have narrow copies.
EPILOGUE = "gelu(acc * scale[m] + bias[n]) + residual[m, n]"
GATED = "silu(gate + bias[gate]) * (up + bias[up])"
SHAPES = [
    (4096, 4096, 4096, "nt", {}),
    (4096, 4096, 4096, "nn", {"out_dtype": "float32"}),
    (4096, 4096, 4096, "tn", {"dtype": "float16"}),
    (4096, 4096, 4096, "tt", {"dtype": "float16", "beta": 1.0}),
    (1024, 8192, 512, "tn", {}),
    (1, 4096, 4096, "nt", {}),
    (3, 2000, 4095, "nn", {"beta": 1.0}),
    (2, 1999, 1999, "nn", {}),
    (4, 4096, 4095, "nt", {}),
    (16, 4096, 4095, "nt", {"out_dtype": "float32"}),
    (64, 4096, 4095, "nt", {}),
    (16, 4095, 4096, "nn", {"beta": 1.0}),
    (16, 7168, 2048, "nt", {}),
    (4096, 16, 4096, "nn", {}),
    (64, 1536, 7168, "nt", {}),
    (64, 64, 16384, "tn", {"beta": 1.0}),
    (768, 1152, 520, "nt", {}),
    (300, 200, 32, "tt", {"out_dtype": "float32"}),
    (257, 129, 65, "nn", {}),
    (1999, 1999, 1999, "nt", {}),
    (3000, 5000, 2468, "tt", {}),
    (100, 102, 36, "tn", {"beta": 1.0}),
    (128, 128, 64, "nt", {"batch": 8}),
    (64, 64, 0, "nt", {"beta": 1.0}),
    (4096, 4096, 4096, "nt", {"epilogue": EPILOGUE}),
    (4096, 4096, 4096, "nn", {"epilogue": EPILOGUE, "out_dtype": "float32"}),
    (16, 4096, 4096, "nt", {"epilogue": "silu(acc + bias[n])"}),
    (257, 129, 65, "nt", {"epilogue": EPILOGUE}),
    (4096, 4096, 4096, "nt", {"epilogue": "gelu(acc) * (1 / s[n])", "out_dtype": "float8_e4m3fn"}),
    (512, 512, 512, "nt", {"epilogue": "acc * s", "out_dtype": "int8"}),
    (64, 4096, 4096, "nt", {"epilogue": "amax(silu(keep(acc + bias[n])))"}),
    (4096, 4096, 4096, "nt", {"epilogue": GATED}),
    (16, 4096, 4096, "nt", {"epilogue": GATED}),
]

KNOBS_OFF = {
    "sm_90": [
        {"num_stages": 1},
        {"staged_stores": False},
        {"raster_group": 0},
        {"cluster_m": 1, "cluster_n": 1},
        {"cluster_m": 2, "multicast": False},
        {"cluster_n": 2, "multicast": False},
        {"tma_stores": False},
        {"dependent_launch": False},
        {"swizzle_bytes": 64, "family": "sm90"},
        {"swizzle_bytes": 32, "family": "sm90", "cluster_m": 2},
        {"swizzle_bytes": 64, "block_k": 32, "family": "sm90"},
        {"swizzle": False, "family": "sm90"},
        {"cluster_k": 2},
        {"cluster_k": 4, "block_m": 64, "block_n": 64},
        {"prefetch": True},
        {"prefetch": False},
        {"persistent": True},
        {"persistent": False, "block_m": 128, "block_n": 96},
        {"ping_pong": True},
        {"ping_pong": True, "block_m": 64, "block_n": 256},
        {"ping_pong": True, "block_m": 128, "block_n": 192, "cluster_m": 2},
        {"swap_ab": True},
        {"swap_ab": False},
        {"split_k": 1},
        {"split_k": 4},
        {"repack_a": True, "repack_b": True},
        {"repack_b": True, "swap_ab": True, "split_k": 2},
        {"family": "gemv"},
        {"family": "gemv", "dependent_launch": False, "split_k": 2, "block_m": 2, "warp_n": 2},
        {"family": "gemv", "block_m": 8, "warp_n": 16, "block_n": 16, "block_k": 512},
        {"family": "gemv", "block_m": 64, "warp_n": 16, "block_n": 16, "block_k": 256},
        {"family": "sm80"},
        {"swizzle": False, "family": "sm80"},
        {"shift_a": True, "shift_b": True},
        {"shift_b": True, "block_m": 16, "block_n": 128, "block_k": 128},
        {"family": "sm90", "shift_a": True, "shift_b": True, "swap_ab": True},
        {"family": "sm90", "shift_b": True, "repack_a": True, "block_m": 64, "block_n": 112},
        {"family": "sm90", "shift_b": True, "repack_a": True, "block_m": 256, "block_n": 128},
    ],
    "sm_80": [
        {"num_stages": 1},
        {"staged_stores": False},
        {"raster_group": 0},
        {"swizzle": False},
        {"split_k": 1},
        {"split_k": 4},
        {"repack_a": True},
        {"shift_a": True, "shift_b": True},
        {"shift_a": True, "block_m": 64, "block_n": 256},
        {"shift_b": True, "repack_a": True},
        {"swizzle": False, "num_stages": 1, "staged_stores": False, "raster_group": 0},
        {"family": "gemv"},
        {"family": "sm75"},
        {"family": "sm75", "num_stages": 1, "swizzle": False},
    ],
}

# CUDA 12 is the only one that still knows Volta.
TARGETS = {
    "libnvrtc.so.12": ["sm_70", "sm_75", "sm_80", "sm_90"],
    "libnvrtc.so.13": [arch.name for arch in fastgemm.arch_table() if arch.name != "sm_70"],
}


def found_nvrtcs():
    """The installed ones by name."""
    return {
        path.name: path
        for folder in folders()
        for path in Path(folder).glob("libnvrtc.so.*")
        if path.name in TARGETS
    }


def start_worker(nvrtc, cache):
    os.environ["FASTGEMM_NVRTC"] = str(nvrtc)
    os.environ["FASTGEMM_CACHE_DIR"] = str(cache)


def build(arch, shape, config):
    """Plans and compiles; what there is to check, as plain values."""
    m, n, k, layout, options = shape
    options = {"dtype": "bfloat16", **options}
    if int(arch[3:]) < 80 or config.family in ("sm70", "sm75"):
        options["dtype"] = "float16"
    plan = fastgemm.plan(m, n, k, layout=layout, arch=arch, config=config, **options)
    warnings = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warnings.append(record.getMessage())
    logging.getLogger("fastgemm").addHandler(handler)
    try:
        kernel = fastgemm.compile(plan)
    finally:
        logging.getLogger("fastgemm").removeHandler(handler)
    got = {
        name: getattr(kernel, name)
        for name in ("name", "target", "registers", "spill_bytes", "shared_bytes", "compile_ms")
    }
    got["code_bytes"] = len(kernel.cubin)
    got["planned_shared_bytes"] = plan.shared_bytes
    got["threads"] = plan.threads
    got["family"] = plan.config.family
    got["ptx"] = kernel.ptx if plan.config.family == "sm90" else ""
    got["warnings"] = warnings
    got["config"] = plan.config
    return got


def faults_of(arch, got, most_code_bytes):
    """What is wrong with a kernel, in words."""
    faults = list(got["warnings"])
    shifts = got["config"].shift_a, got["config"].shift_b
    if any(shifts):  # gathered element by element, or straightened
        most_code_bytes += (6 if int(arch[3:]) < 100 else 24) * 1024
        most_code_bytes += 6 * 1024 if got["family"] == "sm90" else 0
    elif got["config"].repack_a or got["config"].repack_b:  # two kernels, or three
        two = 4 if int(arch[3:]) >= 100 else 0
        most_code_bytes += (6 if got["config"].split_k > 1 else two) * 1024
    if got["spill_bytes"]:
        faults.append(f"{got['spill_bytes']} bytes spilled")
    if not 0 < got["registers"] <= 255 or got["registers"] * got["threads"] > 65536:
        faults.append(f"{got['registers']} registers for {got['threads']} threads")
    if got["shared_bytes"] != got["planned_shared_bytes"]:
        faults.append(f"{got['shared_bytes']} bytes shared, planned {got['planned_shared_bytes']}")
    if got["code_bytes"] > most_code_bytes:
        faults.append(f"{got['code_bytes']} bytes of code")
    if got["target"] != arch + ("a" if got["family"] == "sm90" else ""):
        faults.append(f"compiled for {got['target']}")
    if got["family"] == "sm90":
        wanted = ["wgmma.mma_async", "mbarrier"]
        wanted += ["cp.async.cg"] if any(shifts) else []
        wanted += [] if all(shifts) else ["cp.async.bulk.tensor"]
        wanted += ["multicast"] if got["config"].multicast else []
        wanted += ["griddepcontrol"] if got["config"].dependent_launch else []
        faults += [f"no {word} in its PTX" for word in wanted if word not in got["ptx"]]
    return [f"{got['name']} for {arch}: {fault}" for fault in faults]


@pytest.fixture(scope="module")
def build_all(tmp_path_factory):
    """build() of many cases by the NVRTC of that name, in processes of their own."""
    pools, times = {}, []

    def pool_of(nvrtc):
        path = found_nvrtcs().get(nvrtc)
        need(path, f"no {nvrtc}: pip install 'fastgemm[cu12]' has both")
        if nvrtc not in pools:
            pools[nvrtc] = ProcessPoolExecutor(
                os.cpu_count(),
                multiprocessing.get_context("spawn"),
                initializer=start_worker,
                initargs=(path, tmp_path_factory.mktemp("cache")),
            )
        return pools[nvrtc]

    def build_all(nvrtc, cases):
        pool = pool_of(nvrtc)
        futures = [pool.submit(build, *case) for case in cases]
        results = [future.result() for future in futures]
        times.extend(got["compile_ms"] for got in results if got["compile_ms"])
        return results

    yield build_all
    for pool in pools.values():
        pool.shutdown(cancel_futures=True)
    if times:
        median, longest = statistics.median(times), max(times)
        print(f"\n{len(times)} kernels, median {median:.0f} ms, longest {longest:.0f} ms")


def expect_no_faults(arch, kernels, most_code_bytes):
    faults = [fault for got in kernels for fault in faults_of(arch, got, most_code_bytes)]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("nvrtc", "arch"), [(nvrtc, arch) for nvrtc, archs in TARGETS.items() for arch in archs]
)
def test_picks_keep_to_their_plan(build_all, nvrtc, arch):
    kernels = build_all(nvrtc, [(arch, shape, GemmConfig()) for shape in SHAPES])
    cc = int(arch[3:])
    expect_no_faults(arch, kernels, (56 if cc < 100 else 64) * 1024)  # of sm_100 on: code twice
    families = {"sm90", "sm80"} if cc == 90 else {"sm" + arch[3:] if cc < 80 else "sm80"}
    assert {got["family"] for got in kernels} == families | {"gemv"}
    assert len({got["name"] for got in kernels}) >= 8


@pytest.mark.parametrize("arch", KNOBS_OFF)
@pytest.mark.parametrize("nvrtc", TARGETS)
def test_knobs_turned_off_compile(build_all, nvrtc, arch):
    shape = (2048, 2048, 4096, "nt", {})
    configs = [GemmConfig(**knobs) for knobs in KNOBS_OFF[arch]]
    kernels = build_all(nvrtc, [(arch, shape, config) for config in configs])
    for knobs, got in zip(KNOBS_OFF[arch], kernels, strict=True):
        for name, value in knobs.items():
            assert getattr(got["config"], name) == value, got["name"]
    expect_no_faults(arch, kernels, 64 * 1024)
    assert len({got["name"] for got in kernels}) >= 6


@pytest.mark.parametrize("nvrtc", TARGETS)
def test_registers_move_between_warpgroups_within_the_sm(build_all, nvrtc):
    """Of a kernel with two consumers: 232 registers for their threads, 40 for the producer's."""
    config = GemmConfig(family="sm90", block_m=128, block_n=256, swap_ab=False)
    [got] = build_all(nvrtc, [("sm_90", SHAPES[0], config)])
    assert re.findall(r"setmaxnreg\.(inc|dec)\S*\s+(\d+)", got["ptx"]) in (
        [("dec", "40"), ("inc", "232")],
        [("inc", "232"), ("dec", "40")],
    )
    assert got["threads"] == 384
    assert got["registers"] == 65536 // 384 // 8 * 8
