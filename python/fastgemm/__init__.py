"""Matrix products on NVIDIA Tensor Cores, from kernels generated at run time.

fastgemm.gemm(a, b) takes arrays of NumPy, CuPy, JAX and PyTorch; fastgemm.plan(m, n, k) says which
kernel a product gets, fastgemm.compile(plan) shows it, fastgemm.emulate(a, b) runs it on the CPU.
`import fastgemm` loads no driver, no NVRTC and no array framework.
"""

from ._core import (
    ArchSpec,
    CacheInfo,
    Candidate,
    ColdCallError,
    CompileError,
    DeviceError,
    DriverInfo,
    EmulatorError,
    EmulatorReport,
    Epilogue,
    GemmConfig,
    HardwareSpec,
    InstructionCounts,
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
    emulate,
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
    "EmulatorError",
    "EmulatorReport",
    "Epilogue",
    "GemmConfig",
    "HardwareSpec",
    "InstructionCounts",
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
    "emulate",
    "gemm",
    "hardware",
    "linear",
    "nvrtc_info",
    "plan",
    "prepare",
    "set_strict",
    "set_verbose",
    "strategies",
    "warmup",
]


def warmup(shapes, **arguments) -> int:
    """Plans, compiles and loads what gemm() needs for products of `shapes`, (m, n, k) each.

    The keywords are those of plan(): dtype, layout, out_dtype, batch, beta, device, config; and
    threads, that compile at a time (one a processor by default). Memory is taken to be packed and
    aligned to 16 bytes: other arrays may need other kernels. Later calls only launch, in strict
    mode and in captures too. Returns how many kernels were compiled. Raises what gemm() does.
    """
    from ._warmup import warmup

    return warmup(shapes, **arguments)


def cmake_dir() -> str:
    """The folder of fastgemmConfig.cmake: what -Dfastgemm_DIR= wants."""
    import os

    from . import _core

    return os.path.join(os.path.dirname(_core.__file__), "lib", "cmake", "fastgemm")
