"""The products that are measured: family, M, N, K of D[M, N] = A[M, K] * B[K, N]."""

from typing import NamedTuple


class Shape(NamedTuple):
    family: str
    m: int
    n: int
    k: int


# (N, K) of the linear layers of one transformer block: fused qkv, output, fused gate and up, down.
LAYERS_8B = [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)]
LAYERS_70B = [(10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672)]


def square():
    return [Shape("square", s, s, s) for s in (256, 512, 1024, 2048, 4096, 8192)]


def decode():
    return [Shape("decode", m, n, k) for m in (1, 16, 64) for n, k in LAYERS_8B]


def prefill():
    layers = [(512, LAYERS_8B), (2048, LAYERS_8B), (4096, LAYERS_70B)]
    return [Shape("prefill", m, n, k) for m, nk in layers for n, k in nk]


def thin():
    return [Shape("short k", 4096, 4096, k) for k in (64, 256)] + [
        Shape("long k", 256, 256, 65536),
        Shape("long k", 512, 1024, 32768),
    ]


def odd():
    cubes = [Shape("odd cube", s, s, s) for s in (999, 1999, 3999)]
    return cubes + [
        Shape("odd", 1000, 1000, 1000),
        Shape("odd", 3000, 5000, 2468),
        Shape("odd", 197, 3072, 768),
        Shape("odd", 4088, 4104, 4072),
        Shape("odd", 2047, 2049, 2051),
    ]


SUITES = {
    "all": square() + decode() + prefill() + thin() + odd(),
    "readme": square()[2:] + decode()[4:8] + prefill()[4:8] + thin()[1:3] + odd(),
    "smoke": [Shape("square", 512, 512, 512), Shape("odd", 77, 129, 65)],
}
