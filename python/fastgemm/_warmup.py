"""Readies kernels before they are needed."""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from . import _core


def warmup(
    shapes: Iterable[tuple[int, int, int]],
    *,
    dtype="bfloat16",
    layout: str = "nt",
    out_dtype=None,
    batch: int = 1,
    beta: float = 0.0,
    device: int = 0,
    config: _core.GemmConfig | None = None,
    threads: int | None = None,
) -> int:
    """fastgemm.warmup(), which says what it does."""
    before = _core.cache_info().compiles
    rest = (dtype, layout, out_dtype, batch, beta, device, config)
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        for _ in pool.map(lambda shape: _core._warm_up(*shape, *rest), shapes):
            pass
    return _core.cache_info().compiles - before
