"""`python -m fastgemm`: every command, and errors as one line on stderr with exit code 2."""

import os
import subprocess
import sys
from pathlib import Path

import fastgemm
import pytest


def call(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "fastgemm", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def output(*arguments, **environment):
    result = call(*arguments, **environment)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_info_names_versions_and_places():
    text = output("info")
    assert text.startswith(f"fastgemm {fastgemm.__version__}")
    for line in ("driver", "NVRTC", "cache"):
        assert f"\n{line}" in text
    assert fastgemm.nvrtc_info().version in text


def test_plan_prints_the_decision():
    text = output("plan", 300, 200, 100, "--arch", "sm_80", "--dtype", "float16", "--layout", "tn")
    assert text.startswith("300x200x100 tn float16 on sm_80: ")
    assert "considered" in text


def test_plan_takes_config_fields():
    options = ("--set", "block_m=64", "--set", "swizzle=false", "--set", "num_stages=2")
    text = output("plan", 512, 512, 512, "--arch", "sm_80", *options)
    assert ": sm80 64x" in text
    assert "2 stages" in text


def test_plan_takes_an_epilogue_and_results_of_8_bits():
    options = ("--arch", "sm_90", "--epilogue", "gelu(acc + bias[n])", "--out-dtype", "int8")
    text = output("plan", 512, 512, 512, *options)
    assert "bfloat16 -> int8, gelu(acc + bias[n])" in text
    source = output("compile", 512, 512, 512, *options, "--source")
    assert "math::gelu(acc[i] + bias_[i])" in source


def test_compile_shows_resources_source_and_ptx_and_writes_the_cubin(tmp_path):
    problem = ("compile", 64, 64, 64, "--arch", "sm_80")
    resources = output(*problem)
    assert "registers a thread, 0 bytes spilled" in resources
    name = resources.splitlines()[0]
    assert f"{name}(" in output(*problem, "--source")
    assert ".target sm_80" in output(*problem, "--ptx")
    cubin = tmp_path / "kernel.cubin"
    output(*problem, "--cubin", cubin)
    assert cubin.read_bytes()[:4] == b"\x7fELF"


def test_cache_is_listed_and_cleared(tmp_path):
    folder = {"FASTGEMM_CACHE_DIR": str(tmp_path / "kernels")}
    assert "compiled in" in output("compile", 64, 64, 64, "--arch", "sm_80", **folder)
    assert "from the disk cache" in output("compile", 64, 64, 64, "--arch", "sm_80", **folder)
    assert "cache    1 kernels" in output("cache", **folder)
    assert "cache    0 kernels" in output("cache", "--clear", **folder)


def test_demo_succeeds_with_and_without_a_gpu():
    text = output("demo", "--size", 256, 256, 256)
    assert "right everywhere" in text
    if not fastgemm.devices():
        assert "on sm_90" in text
        assert "No GPU here: the kernel was run on the CPU" in text
        assert "\nwgmma " in text
    assert "0 bytes spilled" in text


def test_emulate_runs_the_kernel_and_prints_its_counts():
    tile = ("--set", "block_m=64", "--set", "block_n=64")
    problem = ("emulate", 64, 64, 64, "--arch", "sm_80", *tile)
    text = output(*problem)
    assert "right everywhere" in text
    assert conflicts(text, "ldmatrix") == 0
    assert conflicts(output(*problem, "--set", "swizzle=false"), "ldmatrix") > 0
    batch = ("--batch", 2, "--layout", "tt")
    assert "\nwgmma " in output("emulate", 8, 128, 64, "--arch", "H100", *batch)


def conflicts(report, instruction):
    (row,) = (line.split() for line in report.splitlines() if line.startswith(instruction))
    return int(row[4])


def test_cmake_dir_is_printed():
    folder = Path(output("cmake-dir").strip())
    assert (folder / "fastgemmConfig.cmake").is_file()
    assert str(folder) == fastgemm.cmake_dir()


def test_the_script_is_the_module():
    script = Path(sys.executable).parent / "fastgemm"
    if not script.is_file():
        pytest.skip("fastgemm is not installed with its script")
    result = subprocess.run([script, "--version"], capture_output=True, text=True)
    assert result.stdout == f"fastgemm {fastgemm.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "COMMAND"),
        (("bananas",), "bananas"),
        (("plan", 1, 2), "K"),
        (("plan", 1, 2, "x"), "x"),
        (("plan", -1, 2, 3), "-1"),
        (("plan", 8, 8, 8, "--arch", "sm_12"), "sm_12"),
        (("plan", 8, 8, 8, "--dtype", "int8"), "int8"),
        (("plan", 8, 8, 8, "--layout", "zz"), "zz"),
        (("plan", 8, 8, 8, "--set", "bananas=1"), "bananas"),
        (("plan", 8, 8, 8, "--set", "block_m"), "block_m"),
        (("plan", 8, 8, 8, "--epilogue", "acc + $"), "column 7: unexpected character '$'"),
        (("plan", 8, 8, 8, "--set", "block_m=big"), "wrong type"),
        (("plan", 8, 8, 8, "--arch", "sm_80", "--set", "block_m=7"), "block_m"),
        (("compile", 8, 8, 8, "--arch", "sm_80", "--cubin", "/nowhere/x"), "/nowhere/x"),
    ],
)
def test_errors_are_one_line_on_stderr(arguments, words):
    result = call(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("fastgemm")
    assert "error: " in result.stderr
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_missing_nvrtc_is_one_line_too(tmp_path):
    environment = {"FASTGEMM_NVRTC": "/nowhere/x.so", "FASTGEMM_CACHE_DIR": str(tmp_path)}
    result = call("compile", 8, 8, 8, "--arch", "sm_80", **environment)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert output("info", **environment)
