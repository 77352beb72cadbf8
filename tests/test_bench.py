"""The benchmark's table says what was measured, and nothing where something went wrong."""

import copy
import importlib.util
import json
import re
import subprocess
import sys

import fastgemm
import pytest
from native import ROOT, run

RESULTS = {
    "kind": "bench",
    "gpu": "Some GPU",
    "driver": "1.2",
    "commit": "abc",
    "date": "2020-01-01",
    "versions": {"torch": "9"},
    "dtype": "float16",
    "layout": "nt",
    "ceilings": {"read_bytes_per_us": 4e6, "flops_per_us": 8e8, "measured": False},
    "rows": [
        {
            "m": 1000,
            "n": 2000,
            "k": 3000,
            "floor_us": 15.0,
            "us": {"fastgemm": 30.0, "torch": 24.0, "cupy": 27.0},
            "error": {"fastgemm": 0.7, "torch": 0.7, "cupy": 0.7},
        }
    ],
    "host_us": {"fastgemm": 5.0, "torch": 11.0},
    "first_call_ms": {"cold": 400.0, "disk": 9.5, "warm": 0.02},
}
SOURCE = {name: RESULTS[name] for name in ("commit", "date", "versions", "dtype", "layout")}
KNOBS = {
    **SOURCE,
    "kind": "knobs",
    "gpu": "Some GPU",
    "driver": "1.2",
    "rows": [
        {"family": "sm90", "shape": [64, 64, 64], "us": {"as planned": 10.0, "no clusters": 12.5}},
        {"family": "sm90", "shape": [16, 64, 64], "us": {"as planned": 20.0, "1 stage": 19.0}},
    ],
}
EPILOGUES = {
    **SOURCE,
    "kind": "epilogues",
    "gpu": "Some GPU",
    "driver": "1.2",
    "rows": [
        {
            "form": "bias, gelu",
            "shape": [64, 64, 64],
            "error": 0.5,
            "us": {"product": 10.0, "fastgemm": 10.5, "torch.compile": 21.0, "cuBLASLt": 12.6},
        },
        {
            "form": "SwiGLU, blocked",
            "shape": [16, 64, 64],
            "error": 0.5,
            "us": {"product": 20.0, "fastgemm": 19.0, "torch.compile": 28.5},
        },
    ],
}
COMPILE_TIMES = {
    **SOURCE,
    "kind": "compile_times",
    "nvrtc": "13.0",
    "rows": [
        {"arch": "sm_80", "compile_ms": ms, "registers": int(ms) + 100, "spill_bytes": spills}
        for ms, spills in ((100.0, 0), (200.0, 8), (300.0, 0))
    ],
}
HOST_OVERHEAD = {
    **SOURCE,
    "kind": "host_overhead",
    "gpu": "Some GPU",
    "driver": "1.2",
    "us": {"torch": {"gemm, out=": 3.25, "torch.mm, out=": 11.5}, "C++": {"gemm()": 0.75}},
    "in_jit_us": {"64 x 64 x 64": {"fastgemm.jax.gemm": 2.5, "XLA's dot": 3.5}},
}
LLAMA_BLOCK = {
    **SOURCE,
    "kind": "llama_block",
    "gpu": "Some GPU",
    "driver": "1.2",
    "layers": 8,
    "rows": [
        {
            "framework": "torch",
            "batch": 16,
            "tokens_per_second": {"torch": 1000.0, "fastgemm": 1100.0},
            "error": 0.001,
        }
    ],
}
README = "above\n<!-- benchmark: begin -->\nold\n<!-- benchmark: end -->\nbelow\n"


def write_table(folder, *results, readme=README):
    (folder / "README.md").write_text(readme)
    paths = [folder / f"{i}.json" for i in range(len(results))]
    for path, content in zip(paths, results, strict=True):
        path.write_text(json.dumps(content))
    command = [sys.executable, ROOT / "bench/table.py", *paths]
    run(*command, "--readme", folder / "README.md")
    return (folder / "README.md").read_text()


def test_table_compares_with_the_fastest_peer_and_the_floor(tmp_path):
    text = write_table(tmp_path, RESULTS)
    assert "| 1000 x 2000 x 3000 | 30.0 | 24.0 | 0.80 | 400 | 0.50 |" in text
    assert "old" not in text


def test_writing_twice_changes_nothing(tmp_path):
    text = write_table(tmp_path, RESULTS)
    assert text.startswith("above\n")
    assert text.endswith("below\n")
    assert write_table(tmp_path, RESULTS, readme=text) == text


def test_knobs_and_compile_times_have_their_tables(tmp_path):
    text = write_table(tmp_path, COMPILE_TIMES, KNOBS, RESULTS)
    assert text.index("**Speed.**") < text.index("**Knobs.**") < text.index("**Compile times**")
    assert "| family sm90 | 64 x 64 x 64 | 16 x 64 x 64 |" in text
    assert "| as planned | 10.0 us | 20.0 us |" in text
    assert "| no clusters | +25.0 % |  |" in text
    assert "| 1 stage |  | -5.0 % |" in text
    assert "| sm_80 | 3 | 200 | 300 | 400 | 1 |" in text


def test_epilogues_are_compared_with_the_product_and_with_others(tmp_path):
    text = write_table(tmp_path, EPILOGUES)
    assert "| epilogue | 64 x 64 x 64 | 16 x 64 x 64 |" in text
    assert "| bias, gelu | +5.0 % (2.00, 1.20) |  |" in text
    assert "| SwiGLU, blocked |  | -5.0 % (1.50) |" in text
    wrong = copy.deepcopy(EPILOGUES)
    wrong["rows"][0]["error"] = 1.2
    with pytest.raises(pytest.fail.Exception, match="wrong"):
        write_table(tmp_path, wrong)


def test_host_time_and_decoding_have_their_tables(tmp_path):
    text = write_table(tmp_path, LLAMA_BLOCK, HOST_OVERHEAD)
    assert text.index("**Host time**") < text.index("**Decoding**")
    assert "| torch | gemm, out= | 3.2 |" in text
    assert "| fastgemm.jax.gemm | 2.5 |" in text and "| XLA's dot | 3.5 |" in text
    assert "| torch | 16 | 1100 | 1000 (torch) | 1.10 |" in text


SCRIPTS = ["all", "bench", "candidates", "epilogues", "first_call", "host_overhead", "knobs"]
SCRIPTS += ["llama_block"]


@pytest.mark.skipif(bool(fastgemm.devices()), reason="there is a GPU")
@pytest.mark.parametrize("script", SCRIPTS)
def test_without_a_gpu_one_line_says_so(script, tmp_path):
    command = [sys.executable, ROOT / f"bench/{script}.py"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1
    assert "GPU" in result.stderr or "PyTorch" in result.stderr
    assert not result.stdout
    assert not list(tmp_path.iterdir())


def test_compile_times_are_those_of_real_compiles(tmp_path):
    out = tmp_path / "times.json"
    arguments = ["--arch", "sm_80,sm_90", "--suite", "smoke", "--out", out]
    for _ in range(2):  # the second time, too
        run(sys.executable, ROOT / "bench/compile_times.py", *arguments)
        rows = json.loads(out.read_text())["rows"]
        assert {row["arch"] for row in rows} == {"sm_80", "sm_90"}
        assert all(row["compile_ms"] > 20 for row in rows)


@pytest.mark.parametrize("error", [1.5, float("nan")])
def test_a_wrong_product_gets_no_table(tmp_path, error):
    results = copy.deepcopy(RESULTS)
    results["rows"][0]["error"]["fastgemm"] = error
    with pytest.raises(pytest.fail.Exception, match="was wrong"):
        write_table(tmp_path, results)


def test_a_readme_without_markers_is_left_alone(tmp_path):
    with pytest.raises(pytest.fail.Exception, match="lacks"):
        write_table(tmp_path, RESULTS, readme="no markers\n")
    assert (tmp_path / "README.md").read_text() == "no markers\n"


def test_the_readme_has_the_markers():
    assert re.search(
        r"<!-- benchmark: begin -->.*<!-- benchmark: end -->",
        (ROOT / "README.md").read_text(),
        re.S,
    )


@pytest.mark.gpu
def test_all_measurements_fill_the_tables(tmp_path):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no torch")
    run(sys.executable, ROOT / "bench/all.py", "--quick", "--out", tmp_path, cwd=tmp_path)
    names = ("bench", "knobs", "compile_times", "host_overhead", "llama_block")
    bench, knobs, compile_times, host_overhead, llama_block = (
        json.loads((tmp_path / f"{name}.json").read_text()) for name in names
    )
    for row in bench["rows"]:
        assert {"fastgemm", "torch"} <= row["us"].keys()
        assert row["error"]["fastgemm"] <= 1
    assert bench["first_call_ms"]["cold"] > bench["first_call_ms"]["disk"] > 0
    assert all(len(row["us"]) > 3 for row in knobs["rows"])
    assert any(1.02 * row["us"]["as planned"] < row["us"]["1 stage"] for row in knobs["rows"])
    assert {"torch", "C++"} <= host_overhead["us"].keys()
    assert all(row["error"] < 0.05 for row in llama_block["rows"])
    epilogues = json.loads((tmp_path / "epilogues.json").read_text())
    assert all(row["error"] <= 1 for row in epilogues["rows"])
    text = write_table(tmp_path, bench, epilogues, knobs, compile_times, host_overhead, llama_block)
    assert bench["gpu"] in text
