"""What JAX programs say to XLA, and what XLA's runtime says to the handler."""

import shutil
import subprocess
from pathlib import Path

import fastgemm
import numpy as np
import pytest
from fake_gpu import on_fake_gpu
from jax_arrays import exactly, fj, integers, jax, jnp, on_the_host  # noqa: F401
from native import ROOT, need


def test_declarations_are_those_of_jaxlib():
    compiler = shutil.which("c++")
    need(compiler, "no C++ compiler")
    folder = Path(jax.ffi.include_dir())
    includes = [f"-I{ROOT / 'python'}", f"-I{folder}"]
    source = ROOT / "tests/cpp/xla_check.cpp"
    command = [compiler, "-std=c++17", "-fsyntax-only", "-Werror", *includes, source]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def lowered_for_gpus(function, *operands):
    return jax.jit(function).trace(*operands).lower(lowering_platforms=("cuda",)).as_text()


def test_a_program_for_gpus_calls_the_handler_without_copies():
    a, weight = integers(4, 8), integers(6, 8, seed=1)
    text = lowered_for_gpus(lambda a, w: fj.linear(a, w, out_dtype="float32"), a, weight)
    assert "stablehlo.custom_call @fastgemm_product" in text
    assert "transpose_b = 1 : i32" in text
    assert "stablehlo.transpose" not in text
    text = lowered_for_gpus(jax.grad(lambda w, a: fj.linear(a, w).sum()), weight, a)
    assert "stablehlo.transpose" not in text
    assert "dot_general" not in text


@on_fake_gpu
def test_xla_calls_the_handler_with_the_product(driver):
    """Through XLA's own runtime: on the CPU, where the handler takes host memory to the GPU."""
    handler = fastgemm._core._xla_handler(True)
    jax.ffi.register_ffi_target("product", handler, platform="cpu")
    config = fastgemm._core._remember_config(fastgemm.GemmConfig(family="sm80", block_m=64))

    def call(a, b, c, shape, dtype, **attributes):
        numbers = {
            "alpha": np.float32(0.5),
            "beta": np.float32(2.0),
            "transpose_a": np.int32(0),
            "transpose_b": np.int32(0),
            "config": np.int64(config),
            **attributes,
        }
        operands = (a, b) if c is None else (a, b, c)
        return jax.ffi.ffi_call("product", jax.ShapeDtypeStruct(shape, dtype))(*operands, **numbers)

    a, b, c = integers(3, 4, 8), integers(1, 8, 6, seed=1), integers(1, 1, 6, seed=2)
    d = jax.jit(lambda a, b, c: call(a, b, c, (3, 4, 6), "float16"))(a, b, c)
    exactly(d, 0.5 * (a @ b) + 2 * c)
    a, b = integers(8, 4, dtype="bfloat16"), integers(6, 8, dtype="bfloat16", seed=1)
    both = {"transpose_a": np.int32(1), "transpose_b": np.int32(1)}
    d = jax.jit(lambda a, b: call(a, b, None, (4, 6), "float32", **both))(a, b)
    exactly(d, 0.5 * (a.T @ b.T))
    fused = {**both, "bias": np.int32(1), "activation": "gelu"}
    jax.jit(lambda a, b, c: call(a, b, c, (4, 6), "float32", **fused))(a, b, c[0])
    assert driver.launches == 3
    with pytest.raises(Exception, match=r"a of shape \(8, 4\) and b of shape \(6, 8\)"):
        call(a, b, None, (8, 8), "bfloat16")
    with pytest.raises(Exception, match="in another process with a GemmConfig"):
        call(a.T, b.T, None, (4, 6), "bfloat16", config=np.int64(5))


@on_fake_gpu
def test_kernels_are_compiled_when_a_program_is_lowered(driver):
    a, weight = integers(64, 4096), integers(64, 4096, seed=1)

    def lowered(split_k, add=0):
        config = fastgemm.GemmConfig(split_k=split_k)
        return lowered_for_gpus(lambda a, w: fj.linear(a, w, config=config) + add, a, weight)

    assert "@fastgemm_product(" in lowered(1)
    assert fastgemm.cache_info().compiles == 1
    lowered(1, add=1)
    assert fastgemm.cache_info().compiles == 1
    assert "@fastgemm_product_with_workspace(" in lowered(2)
    text = lowered_for_gpus(
        lambda a, w: fj.linear(a, w, a[0, :64], activation="gelu"), a, weight
    )
    assert "bias = 1 : i32" in text
    assert 'activation = "gelu"' in text
    assert "erf" not in text
    assert fastgemm.cache_info().compiles == 3
    assert driver.loads == driver.launches == 0
