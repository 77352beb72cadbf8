"""Matrix products on NVIDIA Tensor Cores, from kernels generated at run time.

fastgemm.gemm(a, b) takes arrays of NumPy, CuPy, JAX and PyTorch; fastgemm.plan(m, n, k) says which
kernel a product gets, fastgemm.compile(plan) shows it, fastgemm.emulate(a, b) runs it on the CPU.
`import fastgemm` loads no driver, no NVRTC and no array framework.
"""

from ._core import (
    ArchSpec,
    CacheInfo,
    Candidate,
    CompileError,
    DeviceError,
    DriverInfo,
    EmulatorError,
    EmulatorReport,
    GemmConfig,
    HardwareSpec,
    InstructionCounts,
    Kernel,
    NvrtcInfo,
    Plan,
    __version__,
    arch_table,
    cache_info,
    card_table,
    clear_cache,
    compile,
    devices,
    driver_info,
    emulate,
    gemm,
    hardware,
    nvrtc_info,
    plan,
    set_verbose,
    strategies,
)

__all__ = [
    "ArchSpec",
    "CacheInfo",
    "Candidate",
    "CompileError",
    "DeviceError",
    "DriverInfo",
    "EmulatorError",
    "EmulatorReport",
    "GemmConfig",
    "HardwareSpec",
    "InstructionCounts",
    "Kernel",
    "NvrtcInfo",
    "Plan",
    "__version__",
    "arch_table",
    "cache_info",
    "card_table",
    "clear_cache",
    "cmake_dir",
    "compile",
    "devices",
    "driver_info",
    "emulate",
    "gemm",
    "hardware",
    "nvrtc_info",
    "plan",
    "set_verbose",
    "strategies",
]


def cmake_dir() -> str:
    """The folder of fastgemmConfig.cmake: what -Dfastgemm_DIR= wants."""
    import os

    from . import _core

    return os.path.join(os.path.dirname(_core.__file__), "lib", "cmake", "fastgemm")
