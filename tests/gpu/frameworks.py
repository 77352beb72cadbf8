"""NumPy, CuPy, JAX and PyTorch behind one interface, for tests that say the same of all of them."""

import os

import ml_dtypes
import numpy as np
import pytest

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

BF16 = np.dtype(ml_dtypes.bfloat16)
HALF = np.dtype(np.float16)
SPIN = """extern "C" __global__ void spin(long long n) {
  long long t = clock64();
  while (clock64() - t < n);
}"""


class Numpy:
    on_gpu = False

    def put(self, array):
        return array

    def get(self, x):
        return x

    def is_own(self, x):
        return type(x) is np.ndarray


class Torch:
    on_gpu = True

    def __init__(self):
        self.torch = pytest.importorskip("torch")
        if not self.torch.cuda.is_available():
            pytest.skip("torch has no CUDA")

    def put(self, array):
        if array.dtype == BF16:
            bits = self.torch.from_numpy(np.ascontiguousarray(array).view(np.int16))
            return bits.view(self.torch.bfloat16).cuda()
        return self.torch.from_numpy(np.ascontiguousarray(array)).cuda()

    def get(self, x):
        if x.dtype == self.torch.bfloat16:
            return x.cpu().view(self.torch.int16).numpy().view(BF16)
        return x.cpu().numpy()

    def is_own(self, x):
        return type(x) is self.torch.Tensor and x.is_cuda

    def side_stream(self):
        return self.torch.cuda.stream(self.torch.cuda.Stream())

    def is_done(self, stream):
        return stream.stream.query()

    def spin(self, cycles):
        self.torch.cuda._sleep(cycles)

    def fill(self, x, value):
        x.fill_(value)


class Cupy:
    on_gpu = True

    def __init__(self):
        self.cupy = pytest.importorskip("cupy")
        self.kernel = self.cupy.RawKernel(SPIN, "spin")

    def put(self, array):
        try:
            return self.cupy.asarray(array)
        except (TypeError, ValueError) as error:
            pytest.skip(f"this CuPy has no {array.dtype}: {error}")

    def get(self, x):
        return self.cupy.asnumpy(x)

    def is_own(self, x):
        return isinstance(x, self.cupy.ndarray)

    def side_stream(self):
        return self.cupy.cuda.Stream(non_blocking=True)

    def is_done(self, stream):
        return stream.done

    def spin(self, cycles):
        self.kernel((1,), (1,), (np.int64(cycles),))

    def fill(self, x, value):
        x.fill(value)


class Jax:
    on_gpu = True

    def __init__(self):
        self.jax = pytest.importorskip("jax")
        try:
            self.device = self.jax.devices("cuda")[0]
        except RuntimeError:
            pytest.skip("jax has no CUDA")
        # jax.devices() leaves the last of several GPUs current in this thread, work the right one.
        self.jax.device_put(0.0, self.device).block_until_ready()

    def put(self, array):
        return self.jax.device_put(np.ascontiguousarray(array), self.device)

    def get(self, x):
        return np.asarray(x)

    def is_own(self, x):
        return isinstance(x, self.jax.Array) and x.devices() == {self.device}


MAKERS = {"numpy": Numpy, "torch": Torch, "cupy": Cupy, "jax": Jax}


def integers(shape, dtype=HALF, seed=0):
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


def exact(a, b, dtype=None, c=None, alpha=1.0, beta=0.0):
    product = alpha * (a.astype(np.float64) @ b.astype(np.float64))
    if c is not None:
        product = product + beta * c.astype(np.float64)
    return product.astype(dtype or a.dtype)
