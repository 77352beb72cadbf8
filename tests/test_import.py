"""`import fastgemm` is cheap: no driver, no NVRTC, no array framework."""

import json
import subprocess
import sys

import pytest

CODE = """
import json, sys, time
before = set(sys.modules)
start = time.perf_counter()
import fastgemm
seconds = time.perf_counter() - start
{extra}
libraries = {{line.split("/", 1)[1].strip().rsplit("/", 1)[-1]
             for line in open("/proc/self/maps") if "/" in line}}
print(json.dumps([seconds, sorted(set(sys.modules) - before), sorted(libraries)]))
"""


def import_in_a_new_process(extra="", **options):
    code = CODE.format(extra=extra)
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, **options
    )
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    "extra", ["", "fastgemm.GemmConfig(block_m=64); fastgemm.hardware('sm_90')"]
)
def test_import_opens_neither_driver_nor_nvrtc_nor_frameworks(extra):
    _, modules, libraries = import_in_a_new_process(extra)
    for name in ("libcuda", "libnvrtc", "libcudart"):
        assert not [library for library in libraries if library.startswith(name)]
    assert any(library.startswith("libfastgemm") for library in libraries)
    packages = {module.split(".")[0] for module in modules}
    assert not packages & {
        "numpy",
        "ml_dtypes",
        "torch",
        "cupy",
        "jax",
        "nvidia",
        "logging",
        "pathlib",
    }


def test_planning_opens_no_nvrtc():
    _, _, libraries = import_in_a_new_process("fastgemm.plan(64, 64, 64, arch='sm_80')")
    assert not [library for library in libraries if library.startswith(("libnvrtc", "libcuda"))]


def test_import_takes_milliseconds():
    assert min(import_in_a_new_process()[0] for _ in range(5)) < 0.05


def test_host_arrays_import_no_other_framework():
    pytest.importorskip("numpy")
    extra = """
import numpy
x = numpy.zeros((0, 4), numpy.float16)
fastgemm.gemm(x, x.T @ x)
"""
    _, modules, _ = import_in_a_new_process(extra)
    assert not {m.split(".")[0] for m in modules} & {"torch", "cupy", "jax", "ml_dtypes"}


def test_everything_public_is_documented_and_listed():
    import fastgemm

    for name in fastgemm.__all__:
        thing = getattr(fastgemm, name)
        assert isinstance(thing, str) or thing.__doc__, name
    modules = {"jax", "torch"}  # there once something has imported them
    public = {n for n in vars(fastgemm) if not n.startswith("_")} - modules
    assert public == set(fastgemm.__all__) - {"__version__"}


def test_the_signature_of_gemm_is_shown():
    import inspect

    import fastgemm

    parameters = inspect.signature(fastgemm.gemm).parameters
    assert list(parameters) == [
        "a",
        "b",
        "c",
        "alpha",
        "beta",
        "bias",
        "activation",
        "scale_a",
        "scale_b",
        "residual",
        "keep",
        "amax",
        "out_scale",
        "gated",
        "epilogue",
        "out",
        "out_dtype",
        "config",
        "stream",
    ]
    assert parameters["c"].kind is inspect.Parameter.KEYWORD_ONLY
