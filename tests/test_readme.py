"""The README names files, variables and calls that exist."""

import re
import shutil

from native import ROOT, need, run

README = (ROOT / "README.md").read_text()


def code_blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.S | re.M)


def test_named_files_exist():
    names = set(re.findall(r"`([\w./]+/[\w./]*|[\w]+\.cuh)`", README))
    assert len(names) > 20
    device = ROOT / "include/fastgemm/device"
    for name in names - {"fastgemm/device/"}:
        assert (ROOT / name).exists() or (device / name).exists(), name


def test_environment_variables_are_those_that_the_library_reads():
    sources = "".join(path.read_text() for path in (ROOT / "src").glob("*.cpp"))
    read = set(re.findall(r'(?:getenv|environment)\("(FASTGEMM_\w+)"', sources))
    assert read == set(re.findall(r"^\| `(FASTGEMM_\w+)", README, re.M))


def test_cpp_example_compiles(tmp_path):
    need(shutil.which("c++"), "no C++ compiler: apt-get install g++")
    (block,) = code_blocks("cpp")
    (tmp_path / "example.cpp").write_text(block)
    options = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    run("c++", *options, f"-I{ROOT / 'include'}", tmp_path / "example.cpp")


def test_planning_example_runs_without_a_gpu(capsys):
    (block,) = (block for block in code_blocks("python") if "explain()" in block)
    lines = [line for line in block.splitlines() if not line.startswith("fastgemm.gemm(")]
    names = {}
    exec("import fastgemm\n" + "\n".join(lines), names)  # noqa: S102
    assert names["kernel"].spill_bytes == 0
    assert names["config"].block_m == 128
    assert "us predicted" in capsys.readouterr().out


def test_emulator_examples_show_the_conflicts(capsys):
    sm80, sm90 = (block for block in code_blocks("python") if "emulate(" in block)
    names = {}
    exec(sm80, names)  # noqa: S102
    first, second = capsys.readouterr().out.splitlines()[:2]
    assert int(first) == 0
    assert int(second) > 0
    exec(sm90, names)  # noqa: S102
    lines = capsys.readouterr().out.splitlines()
    loads = [int(line.split()[0]) for line in lines]
    passes = loads[1]  # 64-byte rows take twice as many as there need to be
    assert passes > 0
    assert loads == [0, passes, 3 * passes, 7 * passes]
    assert [line.split()[1] for line in lines] == ["0"] * 4
