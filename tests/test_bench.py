"""The benchmark's table says what was measured, and nothing where something went wrong."""

import copy
import importlib.util
import json
import re
import sys

import pytest
from native import ROOT, run

RESULTS = {
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
README = "above\n<!-- benchmark: begin -->\nold\n<!-- benchmark: end -->\nbelow\n"


def write_table(folder, results, readme=README):
    (folder / "results.json").write_text(json.dumps(results))
    (folder / "README.md").write_text(readme)
    command = [sys.executable, ROOT / "bench/table.py", folder / "results.json"]
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
    assert write_table(tmp_path, RESULTS, text) == text


@pytest.mark.parametrize("error", [1.5, float("nan")])
def test_a_wrong_product_gets_no_table(tmp_path, error):
    results = copy.deepcopy(RESULTS)
    results["rows"][0]["error"]["fastgemm"] = error
    with pytest.raises(pytest.fail.Exception, match="was wrong"):
        write_table(tmp_path, results)


def test_a_readme_without_markers_is_left_alone(tmp_path):
    with pytest.raises(pytest.fail.Exception, match="lacks"):
        write_table(tmp_path, RESULTS, "no markers\n")
    assert (tmp_path / "README.md").read_text() == "no markers\n"


def test_the_readme_has_the_markers():
    assert re.search(
        r"<!-- benchmark: begin -->.*<!-- benchmark: end -->",
        (ROOT / "README.md").read_text(),
        re.S,
    )


@pytest.mark.gpu
def test_bench_measures_both_and_finds_no_error(tmp_path):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no torch")
    out = tmp_path / "results.json"
    options = ["--suite", "smoke", "--rounds", "3", "--providers", "fastgemm,torch", "--out", out]
    run(sys.executable, ROOT / "bench/bench.py", *options)
    results = json.loads(out.read_text())
    for row in results["rows"]:
        assert row["us"].keys() == {"fastgemm", "torch"}
        assert row["error"]["fastgemm"] <= 1
    assert results["first_call_ms"]["cold"] > results["first_call_ms"]["disk"] > 0
