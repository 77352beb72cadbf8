"""Skips `gpu` tests where there is no GPU; builds the C++ side once for all tests that need it."""

import functools
import os
import shutil
from pathlib import Path

# Before anything starts JAX: tests of shardings want several devices.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import pytest
from native import ROOT, need, run


@functools.cache
def gpu_found():
    import fastgemm

    return bool(fastgemm.devices())


@pytest.hookimpl(tryfirst=True)  # before the conditions of skipif marks, which may need the GPU
def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu") and not gpu_found():
        pytest.skip("no GPU")


@pytest.fixture(scope="session")
def cpp_build(tmp_path_factory) -> Path:
    """A build folder with libfastgemm and its unit tests; warnings are errors."""
    need(shutil.which("cmake"), "no cmake: pip install cmake")
    need(shutil.which("c++") or os.environ.get("CXX"), "no C++ compiler: apt-get install g++")
    probe = tmp_path_factory.mktemp("probe")
    (probe / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(probe CXX)\nfind_package(GTest)\n"
        'if(NOT GTest_FOUND)\n  message("GTest is missing")\nendif()\n'
    )
    output = run("cmake", "-S", probe, "-B", probe / "build")
    need("GTest is missing" not in output, "no GoogleTest: apt-get install libgtest-dev")

    build = tmp_path_factory.mktemp("cpp")
    options = ["-DFASTGEMM_BUILD_TESTS=ON", "-DCMAKE_COMPILE_WARNING_AS_ERROR=ON"]
    run("cmake", "-S", ROOT, "-B", build, *options)
    run("cmake", "--build", build, "--parallel", os.cpu_count())
    return build
