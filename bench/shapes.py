"""The products that are measured: family, M, N, K of D[M, N] = A[M, K] * B[K, N]."""

import random
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


def planner():
    """What the cost model is fitted to: layers of many models, small and deep products."""
    widths = [
        256 * i for i in (4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 43, 54, 56, 74, 96, 112)
    ]
    tokens = [1, 2, 4, 8, 16, 24, 32, 48, 64, 77, 80, 96, 100, 112, 128, 144, 160, 176, 192, 197]
    tokens += [200, 224, 256, 300, 320, 384, 448, 500, 512, 577, 640, 768, 1000, 1024, 1536, 2048]
    dice = random.Random(7)
    layers = set()
    while len(layers) < 120:
        m, n, k = dice.choice(tokens), dice.choice(widths), dice.choice(widths)
        if 2 * m * n * k < 1.5e11:  # 200 us
            layers.add((m, n, k))
    cubes = [(s, s, s) for s in range(256, 2561, 128)]
    outputs = [(64, 64), (128, 128), (256, 256), (96, 512)]
    deep = [(m, n, k) for m, n in outputs for k in (8192, 65536)]
    deep += [(64, 64, 131072), (64, 128, 131072), (128, 128, 131072), (128, 256, 65536)]
    deep += [(32, 128, 65536), (64, 512, 32768), (256, 512, 32768), (512, 512, 32768)]
    deep += [(128, 512, 16384), (256, 256, 16384), (512, 768, 12288), (1024, 1024, 16384)]
    heads = [(m, n, k) for m in (8, 64, 128) for n, k in ((128256, 4096), (151936, 2560))]
    # Rows that do not begin with a line of 128 bytes.
    short = [(m, n, k - 8) for m in (16, 64, 512) for n, k in ((28672, 4096), (4096, 14336))]
    return [Shape("planner", *s) for s in sorted(layers) + cubes + deep + heads + short]


def large():
    """Products that run at the GPU's power limit, or nearly."""
    cubes = [(s, s, s) for s in (3072, 4096, 5000, 6144)]
    short_k = [(4096, 4096, 512), (4096, 4096, 1024), (8192, 8192, 512), (32768, 3072, 768)]
    layers = [(m, n, k) for m in (1024, 2048) for n, k in LAYERS_8B]
    layers += [(4096, n, k) for n, k in ((2112, 7168), (24576, 1536), (4096, 7168), (7168, 2048))]
    layers += [(3000, 5120, 5120), (1536, 13824, 5120), (2048, 37888, 3584), (10000, 2000, 3000)]
    layers += [(8192, 1024, 8192), (16384, 1536, 1536), (16384, 4096, 4096), (6288, 1600, 1600)]
    layers += [(700, 7000, 7000), (300, 28672, 4096), (640, 14336, 5120), (2500, 2500, 10000)]
    return [Shape("large", *s) for s in cubes + short_k + layers]


def few_rows():
    nk = [(6144, 4096), (4096, 4096), (28672, 4096), (2048, 2048), (1024, 8192), (32000, 2048)]
    return [Shape("few rows", m, n, k) for m in (2, 3, 4) for n, k in nk]


def odd_rows():
    """What the cost of rows that begin anywhere is fitted to: layers whose widths are no eights."""
    tokens = [1, 4, 16, 32, 64, 100, 128, 192, 256, 300, 384, 512, 700, 1024, 2048]
    dice = random.Random(11)
    layers = set()
    while len(layers) < 48:
        m = dice.choice(tokens)
        n, k = (256 * dice.randint(4, 112) - dice.randint(1, 7) for _ in range(2))
        if n * k < 1.2e8 and 2 * m * n * k < 1.5e11:
            layers.add((m, n, k))
    return [Shape("odd rows", *s) for s in sorted(layers)]


SUITES = {
    "all": square() + decode() + prefill() + thin() + odd(),
    "readme": square()[2:] + decode()[4:8] + prefill()[4:8] + thin()[1:3] + odd(),
    "planner": planner() + few_rows() + decode() + prefill()[:4] + large() + thin() + odd(),
    "odd_rows": odd_rows(),
    "smoke": [Shape("square", 512, 512, 512), Shape("odd", 77, 129, 65)],
}
