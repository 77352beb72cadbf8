"""Matrix products on NVIDIA Tensor Cores, from kernels generated at run time.

fastgemm.gemm(a, b) takes arrays of NumPy, CuPy, JAX and PyTorch; fastgemm.plan(m, n, k) says which
kernel a product gets, fastgemm.compile(plan) shows it. `import fastgemm` loads no driver, no NVRTC
and no array framework.
"""

from ._core import (
    ArchSpec,
    CacheInfo,
    Candidate,
    ColdCallError,
    CompileError,
    DeviceError,
    DriverInfo,
    Epilogue,
    GemmConfig,
    HardwareSpec,
    Kernel,
    NvrtcInfo,
    Plan,
    PreparedGemm,
    __version__,
    arch_table,
    cache_info,
    card_table,
    clear_cache,
    compile,
    devices,
    driver_info,
    gemm,
    hardware,
    linear,
    nvrtc_info,
    plan,
    prepare,
    set_strict,
    set_verbose,
    strategies,
)

__all__ = [
    "ArchSpec",
    "CacheInfo",
    "Candidate",
    "ColdCallError",
    "CompileError",
    "DeviceError",
    "DriverInfo",
    "Epilogue",
    "GemmConfig",
    "HardwareSpec",
    "Kernel",
    "NvrtcInfo",
    "Plan",
    "PreparedGemm",
    "__version__",
    "arch_table",
    "cache_info",
    "card_table",
    "clear_cache",
    "cmake_dir",
    "compile",
    "devices",
    "driver_info",
    "gemm",
    "hardware",
    "linear",
    "nvrtc_info",
    "plan",
    "prepare",
    "set_strict",
    "set_verbose",
    "strategies",
]


def cmake_dir() -> str:
    """The folder of fastgemmConfig.cmake: what -Dfastgemm_DIR= wants."""
    import os

    from . import _core

    return os.path.join(os.path.dirname(_core.__file__), "lib", "cmake", "fastgemm")
