"""The emulator against the GPU: the same bits for integers, else the rounding of sums."""

import fastgemm
import numpy as np
import pytest
from fastgemm import GemmConfig

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.gpu

CONFIGS = {
    "sm80": dict(family="sm80"),
    "sm80, split in 3": dict(family="sm80", split_k=3),
    "sm80, plain": dict(family="sm80", swizzle=False, staged_stores=False, num_stages=1),
    "sm75": dict(family="sm75"),
    "sm70": dict(family="sm70"),
    "sm90": dict(family="sm90"),
    "sm90, 2x1": dict(family="sm90", block_m=128, block_n=64, cluster_m=2),
    "sm90, swapped": dict(family="sm90", swap_ab=True, block_n=32),
    "sm90, ping-pong": dict(family="sm90", ping_pong=True, block_m=64, block_n=64),
    "sm90, 64-byte swizzle": dict(family="sm90", swizzle_bytes=64, block_k=32),
    "sm90, 32-byte swizzle": dict(family="sm90", swizzle_bytes=32, block_k=32),
    "sm90, no swizzle": dict(family="sm90", swizzle=False),
    "sm90, ordinary stores": dict(family="sm90", tma_stores=False),
}
SHAPES = ((256, 256, 256), (200, 136, 336), (8, 512, 2048), (64, 64, 64))


def both(a, b, config, out_dtype):
    """(GPU, emulator) of the very same kernel."""
    gpu = fastgemm.devices()[0]
    config = GemmConfig(**config)
    to_gpu = lambda x: torch.from_numpy(x.copy()).cuda()  # noqa: E731
    on_gpu = fastgemm.gemm(to_gpu(a), to_gpu(b), config=config, out_dtype=out_dtype)
    emulated, report = fastgemm.emulate(a, b, arch=gpu, config=config, out_dtype=out_dtype)
    return on_gpu.cpu().numpy(), emulated, report


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CONFIGS)
def test_integers_give_the_same_bits(name, shape):
    if name.startswith("sm90") and fastgemm.devices()[0].arch.name != "sm_90":
        pytest.skip("family sm90 needs Hopper")
    m, n, k = shape
    generator = np.random.default_rng(0)
    a = generator.integers(-3, 4, (m, k)).astype(np.float16)
    b = generator.integers(-3, 4, (k, n)).astype(np.float16)
    for out_dtype in ("float16", "float32"):
        gpu, emulated, _ = both(a, b, CONFIGS[name], out_dtype)
        assert gpu.tobytes() == emulated.tobytes()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CONFIGS)
def test_random_numbers_differ_by_the_rounding_of_sums(name, shape):
    if name.startswith("sm90") and fastgemm.devices()[0].arch.name != "sm_90":
        pytest.skip("family sm90 needs Hopper")
    m, n, k = shape
    generator = np.random.default_rng(1)
    a = generator.standard_normal((m, k), np.float32).astype(np.float16)
    b = generator.standard_normal((k, n), np.float32).astype(np.float16)
    gpu, emulated, _ = both(a, b, CONFIGS[name], "float32")
    # Tensor Cores cut what they align: up to two bits more than a rounded sum's.
    bound = 4 * k * 2.0**-24 * (np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)))
    difference = np.abs(gpu.astype(np.float64) - emulated.astype(np.float64))
    print(f"{name} {shape}: largest difference {difference.max():.3g}")
    assert (difference <= bound).all()


def test_nan_and_infinity_are_the_gpus():
    special = np.array([np.nan, np.inf, -np.inf, 0.0, 65504.0, 6e-8], np.float16)
    a = np.resize(special, (64, 64))
    b = np.resize(special[::-1].copy(), (64, 48))
    gpu, emulated, _ = both(a, b, dict(family="sm80"), "float16")
    assert gpu.tobytes() == emulated.tobytes()
