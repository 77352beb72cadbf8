"""plan(), GemmConfig, compile() and the hardware table from Python, on a machine with no GPU."""

import copy
import logging
import os
import pickle
import subprocess
import sys
import threading

import fastgemm
import numpy as np
import pytest
from fastgemm import GemmConfig

FIELDS = {
    "family": "sm80",
    "strategy": "square_tiles",
    "block_m": 128,
    "block_n": 64,
    "block_k": 32,
    "warp_m": 64,
    "warp_n": 32,
    "split_k": 2,
    "num_stages": 3,
    "swizzle": False,
    "swizzle_bytes": 16,
    "raster_group": 4,
    "swap_ab": False,
    "staged_stores": True,
    "repack_a": True,
    "repack_b": False,
    "shift_a": False,
    "shift_b": True,
    "cluster_m": 2,
    "cluster_n": 1,
    "cluster_k": 1,
    "multicast": True,
    "tma_stores": False,
    "dependent_launch": True,
    "prefetch": False,
    "ping_pong": False,
    "persistent": True,
}


@pytest.fixture(scope="module")
def kernel():
    return fastgemm.compile(fastgemm.plan(256, 256, 256, dtype="float16", arch="sm_80"))


def test_these_are_all_fields():
    properties = {n for n, v in vars(GemmConfig).items() if isinstance(v, property)}
    assert properties == FIELDS.keys()
    listed = fastgemm.plan(64, 64, 64, arch="sm_80").config
    assert eval(repr(listed)) == listed
    assert all(f"{name}=" in repr(listed) for name in FIELDS)


def test_config_fields_are_none_unless_given():
    empty, full = GemmConfig(), GemmConfig(**FIELDS)
    for name, value in FIELDS.items():
        assert getattr(empty, name) is None
        assert getattr(full, name) == value
        assert type(getattr(full, name)) is type(value)


def test_config_is_immutable():
    config = GemmConfig(block_m=64)
    for name in ("block_m", "family", "bananas"):
        with pytest.raises(AttributeError):
            setattr(config, name, 128)


@pytest.mark.parametrize("name", FIELDS)
def test_configs_differ_in_every_field(name):
    full = GemmConfig(**FIELDS)
    other = full.replace(**{name: None})
    assert other != full
    assert getattr(other, name) is None
    assert other.replace(**{name: FIELDS[name]}) == full
    assert len({full, other, GemmConfig(**FIELDS)}) == 2


def test_config_as_text_as_bytes_and_as_copy():
    config = GemmConfig(block_m=64, family="sm80", swizzle=False)
    assert repr(config) == "GemmConfig(family='sm80', block_m=64, swizzle=False)"
    assert eval(repr(config)) == config
    assert pickle.loads(pickle.dumps(config)) == config
    assert copy.deepcopy(config) == config
    full = GemmConfig(**FIELDS)
    assert pickle.loads(pickle.dumps(full)) == full
    assert full.replace() == full
    assert config != "GemmConfig(family='sm80', block_m=64, swizzle=False)"


@pytest.mark.parametrize("value", ["64", 64.0, [64]])
def test_config_values_are_not_converted(value):
    with pytest.raises(TypeError):
        GemmConfig(block_m=value)
    with pytest.raises(TypeError):
        GemmConfig(swizzle=1)


def test_unknown_config_fields_and_families_are_refused():
    with pytest.raises(TypeError):
        GemmConfig(block_q=1)
    with pytest.raises(TypeError):
        GemmConfig().replace(block_q=1)
    with pytest.raises(ValueError, match="unknown kernel family 'sm60'"):
        GemmConfig(family="sm60")


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_plan_says_what_was_asked(layout, dtype):
    plan = fastgemm.plan(
        300, 200, 100, dtype=dtype, layout=layout, batch=3, arch="sm_80", out_dtype="float32"
    )
    assert (plan.m, plan.n, plan.k, plan.batch) == (300, 200, 100, 3)
    assert (plan.dtype, plan.out_dtype, plan.layout) == (dtype, "float32", layout)
    assert plan.arch == "sm_80"


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_swapped_operands_do_not_change_what_was_asked(layout):
    config = GemmConfig(swap_ab=True)
    plan = fastgemm.plan(4096, 16, 4096, layout=layout, arch="sm_90", config=config)
    assert (plan.m, plan.n, plan.layout) == (4096, 16, layout)


def test_a_plan_gives_its_reasons():
    plan = fastgemm.plan(4096, 4096, 4096, arch="A100")
    config = plan.config
    assert None not in [getattr(config, name) for name in FIELDS]
    warps = config.block_m // config.warp_m * (config.block_n // config.warp_n)
    assert plan.threads == 32 * warps
    assert plan.ctas == -(-4096 // config.block_m) * -(-4096 // config.block_n)
    assert 0 < plan.shared_bytes <= plan.hardware.arch.shared_per_block
    assert plan.ctas_per_sm >= 1
    assert plan.strategy in fastgemm.strategies()
    assert plan.cost["total_us"] > 0
    assert plan.considered[0].config == config
    assert plan.considered[0].refused is None
    assert "\n" not in str(plan)
    assert str(plan) in plan.explain()


def test_a_resolved_config_gives_the_same_plan_again():
    plan = fastgemm.plan(1000, 500, 300, arch="sm_86")
    assert fastgemm.plan(1000, 500, 300, arch="sm_86", config=plan.config).config == plan.config


def test_config_overrides_are_heeded():
    wish = GemmConfig(block_m=64, block_n=64, num_stages=2, swizzle=False, raster_group=0)
    config = fastgemm.plan(512, 512, 512, arch="sm_80", config=wish).config
    for name in FIELDS:
        wanted = getattr(wish, name)
        assert wanted is None or getattr(config, name) == wanted


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"m": -1}, "-1"),
        ({"layout": "xy"}, "layout"),
        ({"arch": "sm_12"}, "sm_12"),
        ({"arch": "RTX 9999"}, "9999"),
        ({"arch": "sm_80", "device": 0}, "arch or device"),
        ({"config": GemmConfig(block_m=7)}, "block_m"),
        ({"config": GemmConfig(strategy="bananas")}, "bananas"),
        ({"config": GemmConfig(block_m=256, block_n=256, block_k=64, num_stages=9)}, "shared"),
    ],
)
def test_what_cannot_be_planned_is_refused(arguments, message):
    given = {"m": 64, "n": 64, "k": 64, **arguments}
    if "device" not in arguments:
        given.setdefault("arch", "sm_80")
    with pytest.raises(ValueError, match=message):
        fastgemm.plan(**given)


@pytest.mark.parametrize("dtype", ["float64", "int8", "float32", np.int32])
def test_other_dtypes_are_not_planned(dtype):
    with pytest.raises(TypeError):
        fastgemm.plan(64, 64, 64, dtype=dtype, arch="sm_80")


def test_missing_devices_are_told():
    with pytest.raises(fastgemm.DeviceError, match="no GPU 99"):
        fastgemm.plan(64, 64, 64, device=99)


@pytest.mark.skipif(bool(fastgemm.devices()), reason="there is a GPU")
def test_without_a_gpu_the_plan_is_for_sm_90():
    assert fastgemm.plan(64, 64, 64).arch == "sm_90"


def test_the_hardware_table_is_shown():
    archs = {arch.name: arch for arch in fastgemm.arch_table()}
    assert {"sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"} <= set(archs)
    h100 = fastgemm.hardware("H100")
    assert h100.arch.cc == 90
    assert h100.arch.shared_per_block == 227 * 1024
    assert h100.device is None
    assert fastgemm.hardware("9.0").arch.name == "sm_90"
    assert fastgemm.plan(64, 64, 64, arch=h100).hardware.name == h100.name
    assert {"H200", "L40S"} <= {word for c in fastgemm.card_table() for word in c.name.split()}


def test_a_kernel_shows_what_it_is(kernel):
    assert kernel.spill_bytes == 0
    assert 0 < kernel.registers <= 255
    assert kernel.cubin[:4] == b"\x7fELF"
    assert kernel.target == "sm_80"
    assert kernel.name in kernel.source
    assert 0 < len(kernel.source.splitlines()) < 60
    assert ".target sm_80" in kernel.ptx
    assert kernel.from_disk == (kernel.compile_ms == 0)
    assert kernel.nvrtc_version == fastgemm.nvrtc_info().version


def test_compiling_leaves_other_threads_running():
    started, ticks, done = threading.Event(), [], threading.Event()

    def tick():
        started.set()
        while not done.wait(0.001):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    started.wait()
    kernel = fastgemm.compile(fastgemm.plan(128, 128, 128, arch="sm_80", dtype="float16"))
    before = len(ticks)
    assert kernel.ptx
    during = len(ticks) - before
    done.set()
    thread.join()
    assert during > 5


def test_verbose_messages_go_through_logging(caplog):
    config = GemmConfig(raster_group=5)
    plan = fastgemm.plan(96, 96, 96, dtype="float16", arch="sm_80", config=config)
    logger = logging.getLogger("fastgemm")
    level = logger.level
    fastgemm.set_verbose(True)
    try:
        with caplog.at_level(logging.INFO, logger="fastgemm"):
            name = fastgemm.compile(plan).name
    finally:
        fastgemm.set_verbose(False)
        logger.setLevel(level)
    messages = [r.getMessage() for r in caplog.records if r.name == "fastgemm"]
    assert any(name in message for message in messages)
    caplog.clear()
    fastgemm.compile(plan)
    assert not caplog.records


@pytest.mark.parametrize("how", ["environment", "function"])
def test_verbose_messages_show_without_any_set_up(how, tmp_path):
    code = "import fastgemm; fastgemm.compile(fastgemm.plan(64, 64, 64, arch='sm_80'))"
    environment = {"FASTGEMM_VERBOSE": "1"} if how == "environment" else {}
    if how == "function":
        code = code.replace(";", "; fastgemm.set_verbose(True);", 1)
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "FASTGEMM_CACHE_DIR": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "fastgemm: " in result.stderr
    assert "registers" in result.stderr
    assert result.stdout == ""


def test_compile_errors_carry_the_log_and_the_source(tmp_path):
    code = """
import fastgemm
try:
    fastgemm.compile(fastgemm.plan(64, 64, 64, arch="sm_80"))
except fastgemm.CompileError as error:
    assert isinstance(error, RuntimeError)
    print(repr(error.log), repr(error.source_path), str(error).splitlines()[0])
"""
    environment = {**os.environ, "FASTGEMM_NVRTC": "/nowhere/libnvrtc.so"}
    environment["FASTGEMM_CACHE_DIR"] = str(tmp_path)
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.startswith("'' '' ")
    assert "/nowhere/libnvrtc.so" in result.stdout


def test_the_cache_is_counted(tmp_path, kernel):
    info = fastgemm.cache_info()
    assert info.capacity >= info.loaded >= 0
    assert info.disk_files >= 0
    assert "CacheInfo(loaded=" in repr(info)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_a_depth_of_zero_is_not_split(arch):
    config = GemmConfig(split_k=7)
    assert fastgemm.plan(300, 200, 0, dtype="float16", arch=arch, config=config).config.split_k == 1
