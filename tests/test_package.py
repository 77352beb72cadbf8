"""What a user installs: sdist, wheel, CMake package, in odd folders, away from the sources."""

import importlib.util
import os
import re
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from native import ROOT, need, run

ENGINE = ROOT / "tests/cpp/engine"
CUDA_LIBRARIES = ("libcuda", "libcudart", "libnvrtc", "libcublas", "libtorch", "libpython")


@pytest.fixture(scope="session")
def sdist(tmp_path_factory) -> Path:
    need(importlib.util.find_spec("scikit_build_core"), "no scikit-build-core: install '.[test]'")
    out = tmp_path_factory.mktemp("sdist")
    script = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    run(sys.executable, "-c", script, out, cwd=ROOT)
    return next(out.glob("*.tar.gz"))


@pytest.fixture(scope="session")
def wheel(sdist, tmp_path_factory) -> Path:
    """Built from the unpacked sdist, as a packager does, in a folder with an awkward name."""
    need(importlib.util.find_spec("nanobind"), "no nanobind: install '.[test]'")
    folder = tmp_path_factory.mktemp("build") / "söurce folder"
    with tarfile.open(sdist) as archive:
        archive.extractall(folder)
    source = next(folder.iterdir())
    out = tmp_path_factory.mktemp("wheel")
    options = ["--no-deps", "--no-build-isolation", "--wheel-dir", out]
    run(sys.executable, "-m", "pip", "wheel", "-q", *options, source)
    shutil.rmtree(folder)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory) -> Path:
    """The wheel's content in a read-only folder whose path has spaces and a non-ASCII letter."""
    site = tmp_path_factory.mktemp("target") / "site päckages"
    run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", site, wheel)
    for path in [site, *site.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    yield site
    for path in [site, *site.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)


def dynamic_section(library):
    need(shutil.which("readelf"), "no readelf: apt-get install binutils")
    return run("readelf", "--dynamic", "--wide", library)


def nvrtc_environment():
    """The engine finds NVRTC where the tests' own installation does."""
    import fastgemm

    return {**os.environ, "FASTGEMM_NVRTC": str(fastgemm.nvrtc_info().path)}


def build_and_run_engine(folder, *options):
    need(shutil.which("cmake"), "no cmake: pip install cmake")
    run("cmake", "-S", ENGINE, "-B", folder, *options)
    run("cmake", "--build", folder)
    output = run(folder / "engine", cwd=folder, env=nvrtc_environment())
    assert "sm_80" in output
    assert "product right" in output or "no GPU" in output
    return output


def test_sdist_holds_what_a_build_needs_and_no_more(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    for name in ("CMakeLists.txt", "pyproject.toml", "README.md", "LICENSE", "python/bindings.cpp"):
        assert name in names
    assert "src/embed_headers.cmake" in names
    strays = [
        name for name in names if name.split("/")[0] in (".ci", "bench", "build", "dist", ".git")
    ]
    assert not strays


def test_wheel_holds_library_headers_stubs_and_licence(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    headers = [path.relative_to(ROOT) for path in (ROOT / "include").rglob("*.*h*")]
    assert any(path.suffix == ".cuh" for path in headers)
    for name in [
        "fastgemm/_core.pyi",
        "fastgemm/py.typed",
        "fastgemm/lib/libfastgemm.so",
        "fastgemm/lib/libfastgemm_emulated.so",
        "fastgemm/lib/cmake/fastgemm/fastgemmConfig.cmake",
        *(f"fastgemm/{path}" for path in headers),
    ]:
        assert name in names, name
    assert any(name.endswith("licenses/LICENSE") for name in names)
    unexpected = [n for n in names if not re.match(r"fastgemm(-[\d.]+\.dist-info)?/", n)]
    assert not unexpected


def test_libraries_link_nothing_of_cuda_and_find_each_other_relatively(installed):
    package = installed / "fastgemm"
    extension, library = next(package.glob("_core*.so")), package / "lib/libfastgemm.so"
    for path in (extension, library):
        needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic_section(path))
        assert needed
        assert not [name for name in needed if name.startswith(CUDA_LIBRARIES)]
        runpath = re.findall(r"(?:RUNPATH|RPATH).*\[(.*)\]", dynamic_section(path))
        assert all(part.startswith("$ORIGIN") for entry in runpath for part in entry.split(":"))
    assert "[$ORIGIN/lib]" in dynamic_section(extension)


def test_library_exports_only_its_own_interface(installed):
    need(shutil.which("nm"), "no nm: apt-get install binutils")
    library = installed / "fastgemm/lib/libfastgemm.so"
    symbols = run("nm", "--dynamic", "--defined-only", "--demangle", library).splitlines()
    strong = [line.split(maxsplit=2)[2] for line in symbols if line.split()[1] in "TDB"]
    assert any(name.startswith("fastgemm::gemm(") for name in strong)
    assert not [name for name in strong if not re.search(r"\bfastgemm::", name)]


def test_import_from_a_read_only_folder_with_an_odd_path_loads_no_cuda(installed, tmp_path):
    script = (
        "import fastgemm, sys; print(fastgemm.__file__);"
        "maps = open('/proc/self/maps').read();"
        "assert 'libcuda' not in maps and 'libnvrtc' not in maps, maps;"
        "heavy = {'numpy', 'torch', 'jax', 'cupy'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    output = run(sys.executable, "-c", script, cwd=tmp_path, env=environment)
    assert Path(output.strip()).is_relative_to(installed)


def test_engine_builds_and_runs_against_the_wheel(installed, tmp_path):
    folder = tmp_path / "build folder"
    cmake_dir = installed / "fastgemm/lib/cmake/fastgemm"
    build_and_run_engine(folder, f"-Dfastgemm_DIR={cmake_dir}")


def test_engine_builds_and_runs_against_a_moved_prefix(cpp_build, tmp_path):
    run("cmake", "--install", cpp_build, "--prefix", tmp_path / "prefix", "--strip")
    moved = tmp_path / "moved prefix"
    (tmp_path / "prefix").rename(moved)
    build_and_run_engine(tmp_path / "build", f"-DCMAKE_PREFIX_PATH={moved}")
    configs = "".join(path.read_text() for path in moved.rglob("*.cmake"))
    assert str(ROOT) not in configs
    assert str(cpp_build) not in configs


def test_version_is_the_same_everywhere(installed, tmp_path):
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.M)[1]
    assert (installed / f"fastgemm-{version}.dist-info").is_dir()
    config = installed / "fastgemm/lib/cmake/fastgemm/fastgemmConfigVersion.cmake"
    assert f'set(PACKAGE_VERSION "{version}")' in config.read_text()
    script = "import fastgemm; print(fastgemm.__version__)"
    environment = {**os.environ, "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"}
    assert run(sys.executable, "-c", script, cwd=tmp_path, env=environment).strip() == version
