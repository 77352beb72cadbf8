"""JAX on its host devices, for tests of fastgemm.jax; skips them where there is no JAX."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
fj = pytest.importorskip("fastgemm.jax")
sharding = pytest.importorskip("jax.sharding")
AxisType, NamedSharding, P = sharding.AxisType, sharding.NamedSharding, sharding.PartitionSpec


@pytest.fixture(autouse=True)
def on_the_host():
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def integers(*shape, dtype="float16", seed=0):
    """Small integers: their products and sums are exact in every dtype."""
    return jnp.asarray(np.random.default_rng(seed).integers(-2, 3, shape), dtype)


def exactly(x, y):
    assert x.shape == y.shape
    np.testing.assert_array_equal(np.asarray(x, np.float64), np.asarray(y, np.float64))
