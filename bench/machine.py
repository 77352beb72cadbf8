"""Which machine the numbers belong to, and what it can do at most."""

import contextlib
import datetime
import platform
import subprocess
from importlib import metadata
from pathlib import Path

import fastgemm
import torch


def machine():
    """Which GPU, driver, versions and commit the numbers belong to."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader", "--id=0"]
    gpu, driver = torch.cuda.get_device_name(), "unknown"
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        driver = subprocess.check_output(query, text=True).split(",")[1].strip()
    commit = "unknown"
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        git = ["git", "-C", Path(__file__).parent, "describe", "--always", "--dirty", "--exclude=*"]
        commit = subprocess.check_output(git, text=True, stderr=subprocess.DEVNULL).strip()
    versions = {"python": platform.python_version(), "cuda (torch)": torch.version.cuda}
    for name in ("fastgemm", "torch", "cupy-cuda13x", "nvidia-cuda-nvrtc", "nvidia-cublas"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    return {"gpu": gpu, "driver": driver, "commit": commit, "date": date, "versions": versions}


def ceilings(read_gbps=None, peak_tflops=None):
    """Bytes and flops a microsecond at most: the data sheet's unless measured ones are given."""
    device = fastgemm.devices()[torch.cuda.current_device()]
    arch_flops = device.sms * device.arch.mma_flops_per_clock * device.clock_ghz * 1e3
    return {
        "read_bytes_per_us": (read_gbps or device.dram_gbps) * 1e3,
        "flops_per_us": peak_tflops * 1e6 if peak_tflops else arch_flops,
        "measured": bool(read_gbps and peak_tflops),
    }
