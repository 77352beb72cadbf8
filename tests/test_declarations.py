"""Our own CUDA declarations say what the headers of each supported CUDA major say."""

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEADER = ROOT / "src" / "cuda_declarations.hpp"
CHECK = ROOT / "tests" / "cpp" / "declarations_check.cpp"

INCLUDE_FOLDERS = {
    "12": ("cuda_runtime/include", "cuda_nvrtc/include"),
    "13": ("cu13/include",),
}


def installed_include_folders(major: str) -> list[Path]:
    """Where the wheels nvidia-cuda-runtime and nvidia-cuda-nvrtc put their headers."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(p) for p in (spec.submodule_search_locations or [])] if spec else []
    return [
        root / folder
        for root in roots
        for folder in INCLUDE_FOLDERS[major]
        if (root / folder).is_dir()
    ]


def check(source: Path, header_folder: Path, major: str) -> subprocess.CompletedProcess:
    folders = installed_include_folders(major)
    for header in ("cuda.h", "nvrtc.h"):
        if not any((folder / header).is_file() for folder in folders):
            pytest.skip(f"no {header} of CUDA {major} in site-packages")
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    includes = [
        f"-I{folder}" for folder in (header_folder, ROOT / "src", ROOT / "include", *folders)
    ]
    return subprocess.run(
        [compiler, "-std=c++17", "-fsyntax-only", "-Werror", *includes, str(source)],
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("major", INCLUDE_FOLDERS)
def test_declarations_are_those_of_the_cuda_headers(major):
    result = check(CHECK, HEADER.parent, major)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("major", INCLUDE_FOLDERS)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38", "CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 39"),
        ("using CUdeviceptr = unsigned long long;", "using CUdeviceptr = unsigned long;"),
        ("(CUfunction function, CUfunction_attribute", "(CUmodule function, CUfunction_attribute"),
    ],
)
def test_the_check_notices_a_wrong_declaration(major, right, wrong, tmp_path):
    text = HEADER.read_text()
    assert right in text
    (tmp_path / HEADER.name).write_text(text.replace(right, wrong))
    result = check(CHECK, tmp_path, major)
    assert result.returncode != 0
    assert "static assertion failed" in result.stderr


def test_every_declared_value_is_compared():
    declared = set(re.findall(r"\b((?:CU|NVRTC)\w+) = \d+\b", HEADER.read_text()))
    compared = set(re.findall(r"SAME_VALUE\((\w+)\)", CHECK.read_text()))
    assert declared
    assert declared == compared - {"name"}
