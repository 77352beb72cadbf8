"""emulate() from Python: arguments, report, typed errors; gemm() of host arrays with no GPU."""

import os
import subprocess
import sys

import fastgemm
import numpy as np
import pytest
from products import operand, product

SM80 = dict(family="sm80", block_m=64, block_n=64, block_k=64, num_stages=3)


def test_result_and_report():
    a, b = operand(70, 50, "float16", False, 1), operand(50, 30, "float16", False, 2)
    result, report = fastgemm.emulate(a, b)
    assert isinstance(result, np.ndarray)
    assert result.dtype == np.float16
    assert (result == a @ b).all()
    assert report.arch == "sm_80"
    assert report.kernels[0].startswith("fastgemm_sm80_f16")
    assert report.ctas >= 1
    assert report.threads % 32 == 0
    assert report.seconds > 0
    for word in ("conflicts", "ldmatrix", "mma.sync", report.config, "no errors"):
        assert word in str(report)
    assert report.config in repr(report)
    with pytest.raises(KeyError):
        report["wgmma"]


def test_arch_is_a_name_or_hardware():
    a, b = operand(64, 64, "float16", False, 1), operand(64, 64, "float16", True, 2)
    for arch in ("H100", fastgemm.hardware("sm_90")):
        assert fastgemm.emulate(a, b, arch=arch)[1]["wgmma"].executed > 0
    assert fastgemm.emulate(a, b, arch="sm_75")[1].arch == "sm_75"
    with pytest.raises(ValueError, match="sm_12"):
        fastgemm.emulate(a, b, arch="sm_12")
    with pytest.raises(TypeError, match="arch"):
        fastgemm.emulate(a, b, arch=90)


def test_batches_and_vectors_are_those_of_matmul():
    generator = np.random.default_rng(0)
    a = generator.integers(-3, 4, (3, 2, 17, 20)).astype(np.float16)
    b = generator.integers(-3, 4, (2, 20, 9)).astype(np.float16)
    assert (fastgemm.emulate(a, b)[0] == a @ b).all()
    assert (fastgemm.emulate(a[0, 0], b[0, :, 0])[0] == a[0, 0] @ b[0, :, 0]).all()
    assert fastgemm.emulate(a[..., :0, :], b)[0].shape == (3, 2, 0, 9)


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        (dict(stream=1), TypeError, "stream"),
        (dict(bananas=1), TypeError, "bananas"),
        (dict(workers=0), ValueError, "workers"),
        (dict(config=fastgemm.GemmConfig(block_m=7)), ValueError, "block_m"),
        (dict(out=np.zeros((3, 3), np.float16)), ValueError, "shape"),
    ],
)
def test_bad_arguments_are_named(arguments, error, words):
    a = operand(64, 64, "float16", False, 1)
    with pytest.raises(error, match=words):
        fastgemm.emulate(a, a, **arguments)


def test_gemm_does_not_take_what_is_the_emulators():
    a = operand(64, 64, "float16", False, 1)
    with pytest.raises(TypeError, match=r"gemm\(\).*arch"):
        fastgemm.gemm(a, a, arch="sm_80")


def test_counts_follow_from_the_shape():
    report = product(128, 128, 128, layout="nt", **SM80)
    assert report["mma.sync"].executed == 128**3 // (16 * 8 * 16)
    assert report["cp.async"].shared_bytes == 2 * 2 * 128 * 128 * 2  # two tiles need each operand
    assert report["cp.async"].global_bytes == report["cp.async"].shared_bytes
    assert report["st.global"].global_bytes == 128 * 128 * 2
    sm90 = product(128, 128, 128, arch="sm_90", family="sm90", block_m=64, block_n=64, warp_m=64)
    assert sm90["wgmma"].executed == 128**3 // (64 * 64 * 16)


@pytest.mark.parametrize("layout", ["nt", "tn"])
def test_the_swizzle_prevents_bank_conflicts(layout):
    on = product(64, 64, 64, layout=layout, **SM80)
    off = product(64, 64, 64, layout=layout, swizzle=False, **SM80)
    assert on["ldmatrix"].bank_conflicts == 0
    assert on["cp.async"].bank_conflicts == 0
    # All rows of a plain 128-byte wide tile begin in bank 0: eight passes where one would do.
    assert off["ldmatrix"].bank_conflicts == 7 * on["ldmatrix"].wavefronts


# Bytes of a row in shared memory, and the passes that the TMA takes for 128 bytes.
@pytest.mark.parametrize("layout", ["nt", "nn", "tn", "tt"])
@pytest.mark.parametrize("swizzle_bytes, passes", [(128, 1), (64, 2), (32, 4), (16, 8)])
def test_narrow_swizzles_of_sm90_leave_the_tma_with_bank_conflicts(layout, swizzle_bytes, passes):
    m, n, k = 128, 128, 128
    fields = dict(family="sm90", block_m=64, block_n=64, swap_ab=False, cluster_m=1, cluster_k=1)
    report = product(m, n, k, layout=layout, arch="sm_90", swizzle_bytes=swizzle_bytes, **fields)
    load, store, wgmma = (report[name] for name in ("TMA load", "TMA store", "wgmma"))
    assert load.shared_bytes == 2 * 2 * (m + n) * k  # two tiles need each operand
    assert load.wavefronts == passes * load.shared_bytes // 128
    assert load.bank_conflicts == (passes - 1) * load.shared_bytes // 128
    # Core matrices have their rows in different banks, whatever the swizzle; D has its own panels.
    assert wgmma.wavefronts == wgmma.shared_bytes // 128 == (64 + 64) * 16 * 2 // 128 * 4 * k // 16
    assert wgmma.bank_conflicts == 0
    assert store.wavefronts == m * n * 2 // 128
    assert store.bank_conflicts == 0


def test_rows_of_sixteen_bytes_fetch_every_sector_twice():
    store = np.ones(64 * 64 + 16, np.float16)
    first = -store.ctypes.data % 32 // 2  # where a sector begins
    a = store[first : first + 64 * 64].reshape(64, 64)
    for swizzle, sectors_of_bytes in ((True, 32), (False, 16)):
        config = fastgemm.GemmConfig(family="sm90", block_m=64, block_n=64, swizzle=swizzle)
        load = fastgemm.emulate(a, a.T, arch="sm_90", config=config)[1]["TMA load"]
        assert load.global_bytes == 2 * 64 * 64 * 2
        assert load.sectors == load.global_bytes // sectors_of_bytes


def test_multicast_fetches_what_is_shared_once():
    fields = dict(family="sm90", block_m=64, block_n=64, swap_ab=False, cluster_m=2)
    shared = product(128, 64, 256, arch="sm_90", **fields)
    apart = product(128, 64, 256, arch="sm_90", multicast=False, **fields)
    assert apart["TMA load"].global_bytes == 2 * (128 + 2 * 64) * 256
    assert shared["TMA load"].global_bytes == 2 * (128 + 64) * 256


def in_new_process(code, **environment):
    environment = {**os.environ, **environment}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


NO_GPU = pytest.mark.skipif(bool(fastgemm.devices()), reason="there is a GPU")


@NO_GPU
def test_gemm_of_host_arrays_warns_once_and_is_emulated():
    code = """
import numpy, fastgemm, warnings
a = numpy.eye(64, dtype=numpy.float16) * 3
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        assert (fastgemm.gemm(a, a) == 9 * numpy.eye(64)).all()
print([w.category.__name__ for w in caught], caught[0].message)
"""
    result = in_new_process(code)
    assert result.returncode == 0, result.stderr
    assert "['RuntimeWarning'] there is no GPU" in result.stdout


def test_usual_products_need_no_compiler_and_others_say_that_they_do():
    code = """
import numpy, fastgemm
a = numpy.ones((256, 256), numpy.float16)
assert (fastgemm.emulate(a, a)[0] == 256).all()
assert (fastgemm.emulate(a, a.T, arch="H100")[0] == 256).all()
out = numpy.full((31, 37), 7, numpy.float16)
try:
    fastgemm.emulate(a[:31, :33], a[:33, :37], out=out)
except fastgemm.CompileError as error:
    print(error)
assert (out == 7).all()
"""
    environment = dict(PATH="/nowhere", CXX="", FASTGEMM_CACHE_MB="0")
    result = in_new_process(code, **environment)
    assert result.returncode == 0, result.stderr
    assert "apt-get install g++" in result.stdout


def test_a_compiled_kernel_is_kept_on_disk(tmp_path):
    code = """
import numpy, fastgemm
a = numpy.ones((40, 40), numpy.float16)
print(fastgemm.emulate(a, a, config=fastgemm.GemmConfig(block_m=48, block_n=48))[0].max())
"""
    folder = dict(FASTGEMM_CACHE_DIR=str(tmp_path))
    assert in_new_process(code, **folder).stdout == "40.0\n"
    assert any(tmp_path.iterdir())
    result = in_new_process(code, PATH="/nowhere", CXX="", **folder)
    assert result.stdout == "40.0\n", result.stderr


def test_a_source_that_does_not_compile_gives_the_compilers_words(tmp_path):
    headers = tmp_path / "fastgemm/device"
    headers.mkdir(parents=True)
    (headers / "gemm_kernel.cuh").write_text("#error these are bananas\n")
    code = """
import numpy, fastgemm
a = numpy.ones((40, 40), numpy.float16)
try:
    fastgemm.emulate(a, a)
except fastgemm.CompileError as error:
    print(error.log)
"""
    result = in_new_process(code, FASTGEMM_DEVICE_HEADERS=str(tmp_path))
    assert "bananas" in result.stdout or "prelude.cuh" in result.stdout, result.stderr
