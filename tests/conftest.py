"""Skips `gpu` tests where there is no GPU; builds the C++ side once for all tests that need it."""

import os
import shutil
from pathlib import Path

import pytest
from native import ROOT, need, run


def pytest_collection_modifyitems(items):
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    import fastgemm

    if not fastgemm.devices():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no GPU"))


@pytest.fixture(scope="session")
def cpp_build(tmp_path_factory) -> Path:
    """A build folder with libfastgemm and its unit tests; warnings are errors."""
    need(shutil.which("cmake"), "no cmake: pip install cmake")
    need(shutil.which("c++") or os.environ.get("CXX"), "no C++ compiler: apt-get install g++")
    probe = tmp_path_factory.mktemp("probe")
    (probe / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(probe CXX)\nfind_package(GTest)\n"
        'message("GTest: ${GTest_FOUND}")\n'
    )
    found = "GTest: 1" in run("cmake", "-S", probe, "-B", probe / "build").replace("TRUE", "1")
    need(found, "no GoogleTest: apt-get install libgtest-dev")

    build = tmp_path_factory.mktemp("cpp")
    options = ["-DFASTGEMM_BUILD_TESTS=ON", "-DCMAKE_COMPILE_WARNING_AS_ERROR=ON"]
    run("cmake", "-S", ROOT, "-B", build, *options)
    run("cmake", "--build", build, "--parallel", os.cpu_count())
    return build
