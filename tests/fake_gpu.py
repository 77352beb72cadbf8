"""Runs a test in a process whose CUDA driver is tests/cpp/fake_libcuda.cpp, computing on the CPU.

What is launched, and where to, is then checked without a GPU: host memory stands for the GPU's.
"""

import ctypes
import functools
import inspect
import os
import shutil
import sys
import tempfile
from pathlib import Path

from dlpack_stub import CUDA, host
from native import ROOT, need, run


@functools.cache
def library() -> Path:
    compiler = shutil.which("c++")
    need(compiler, "no C++ compiler")
    path = Path(tempfile.mkdtemp(prefix="fastgemm-fake-")) / "libcuda.so.1"
    here = ROOT / "tests/cpp"
    sources = here / "fake_libcuda.cpp", here / "fake_libcuda_rest.cpp"
    options = ["-std=c++17", "-shared", "-fPIC", "-w", "-O1", "-Wl,-soname,libcuda.so.1"]
    includes = f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}"
    run(compiler, *options, *includes, "-o", path, *sources)
    return path


class Driver:
    """The fake's variables as attributes, without their prefix."""

    def __init__(self):
        vars(self)["_library"] = ctypes.CDLL(os.environ["FAKE_LIBCUDA"], ctypes.RTLD_GLOBAL)

    def __getattr__(self, name):
        kind = ctypes.c_void_p if name == "stream" else ctypes.c_int
        return kind.in_dll(self._library, f"fake_{name}").value

    def __setattr__(self, name, value):
        ctypes.c_int.in_dll(self._library, f"fake_{name}").value = value


def on_fake_gpu(test):
    """The test gets a Driver, and nothing else."""
    path = Path(inspect.getfile(test))

    def in_child(tmp_path):
        code = (
            f"import sys; sys.path[:0] = [{str(path.parent)!r}, {str(Path(__file__).parent)!r}]\n"
            "import fake_gpu; driver = fake_gpu.Driver(); driver.computes = 1\n"
            f"import {path.stem}; {path.stem}.{test.__name__}.body(driver)"
        )
        environment = {
            **os.environ,
            "FAKE_LIBCUDA": str(library()),
            "FASTGEMM_CACHE_DIR": str(tmp_path),
        }
        run(sys.executable, "-c", code, env=environment)

    in_child.body = test
    in_child.__name__ = test.__name__
    in_child.__doc__ = test.__doc__
    return in_child


def on_gpu(array, device=0, **keywords):
    """A DLPack producer that says of a NumPy array's memory that it is a GPU's."""
    return host(array, device=(CUDA, device), **keywords)
