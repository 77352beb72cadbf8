"""Which machine and versions the numbers belong to, what it can do at most, and what is missing."""

import argparse
import contextlib
import datetime
import json
import platform
import subprocess
from importlib import metadata
from pathlib import Path

import fastgemm

try:
    import torch
except ImportError:  # require_gpu() says so
    torch = None

PACKAGES = ("fastgemm", "torch", "cupy-cuda13x", "nvidia-cuda-nvrtc", "nvidia-cublas")


def make_parser(docstring):
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=docstring.splitlines()[0])
    parser.add_argument("--dtype", choices=("bfloat16", "float16"), default="bfloat16")
    parser.add_argument("--layout", choices=("nn", "nt", "tn", "tt"), default="nt")
    parser.add_argument("--commit", help="where the sources have no git history with them")
    parser.add_argument("--out", type=Path, help="also write the results as JSON")
    return parser


def require_gpu():
    """Ends the script with one line where nothing can be measured."""
    if torch is None:
        raise SystemExit("the benchmarks need PyTorch with CUDA: pip install torch")
    driver = fastgemm.driver_info()
    if not fastgemm.devices():
        reason = " ".join(driver.reason.split()) or "the driver shows none"
        raise SystemExit(f"the benchmarks need an NVIDIA GPU: {reason}")
    if not torch.cuda.is_available():
        raise SystemExit("the benchmarks need PyTorch with CUDA: this one sees no GPU")


def output(*command):
    """What a command prints; empty where it fails."""
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        return subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL).strip()
    return ""


def provenance(kind, options):
    """Of what `kind` the results are, and which commit, day and versions they belong to."""
    describe = ("git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty")
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return {
        "kind": kind,
        "commit": options.commit or output(*describe, "--exclude=*") or "unknown",
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
        "versions": versions,
        "dtype": options.dtype,
        "layout": options.layout,
    }


def gpu():
    """Which GPU and driver the numbers belong to."""
    query = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0")
    return {"gpu": torch.cuda.get_device_name(), "driver": output(*query) or "unknown"}


def ceilings(read_gbps=None, peak_tflops=None):
    """Bytes and flops a microsecond at most: the data sheet's unless measured ones are given."""
    device = fastgemm.devices()[torch.cuda.current_device()]
    arch_flops = device.sms * device.arch.mma_flops_per_clock * device.clock_ghz * 1e3
    return {
        "read_bytes_per_us": (read_gbps or device.dram_gbps) * 1e3,
        "flops_per_us": peak_tflops * 1e6 if peak_tflops else arch_flops,
        "measured": bool(read_gbps and peak_tflops),
    }


def write(results, path):
    if path:
        path.write_text(json.dumps(results, indent=1) + "\n")
