"""What the tests of epilogues on the GPU share: vectors, and a config for every way of storing."""

import torch
from exact import integers


def on_hopper():
    return torch.cuda.get_device_capability() == (9, 0)


def vector(size, dtype, seed, offset=0, step=1):
    """Multiples of 1/8; with `offset` at an odd address, with `step` not side by side."""
    values = integers((size + offset) * step, dtype=dtype, seed=seed, most=16) / 8
    return values[offset * step :: step]


CONFIGS = {
    "sm90": dict(family="sm90", block_m=128, block_n=128),
    "sm90 wide": dict(family="sm90", block_m=128, block_n=256),
    "sm90 tall warps": dict(family="sm90", block_m=256, warp_m=128, block_n=128),
    "sm90 three consumers": dict(family="sm90", block_m=192, block_n=128),
    "sm90 208": dict(family="sm90", block_m=128, block_n=208),
    "sm90 cluster": dict(family="sm90", block_m=128, block_n=128, cluster_m=2),
    "sm90 ordinary stores": dict(family="sm90", block_m=128, block_n=128, tma_stores=False),
    "sm90 direct": dict(family="sm90", block_m=64, block_n=64, staged_stores=False),
    "sm90 split": dict(family="sm90", split_k=3),
    "sm90 swapped": dict(family="sm90", swap_ab=True, block_m=64, block_n=16),
    "sm90 swapped 48": dict(family="sm90", swap_ab=True, block_m=128, block_n=48),
    "sm90 swapped, ordinary": dict(family="sm90", swap_ab=True, block_n=64, tma_stores=False),
    "sm90 swapped split": dict(family="sm90", swap_ab=True, block_n=16, split_k=3),
    "sm90 cluster K": dict(family="sm90", block_m=64, block_n=64, cluster_k=2),
    "sm90 swapped cluster K": dict(
        family="sm90", swap_ab=True, block_m=64, block_n=16, cluster_k=2
    ),
    "sm90 56 rows": dict(family="sm90", block_m=112, warp_m=56),
    "sm90 swapped 40 rows": dict(family="sm90", swap_ab=True, block_m=40, block_n=32),
    "sm90 swapped 24 rows": dict(
        family="sm90", swap_ab=True, block_m=24, block_n=32, tma_stores=False
    ),
    "gemv": dict(family="gemv"),
    "sm80": dict(family="sm80", block_m=64, block_n=64),
    "sm80 large": dict(family="sm80", block_m=128, block_n=128),
    "sm80 odd tile": dict(family="sm80", block_m=48, block_n=80, warp_m=48, warp_n=16),
    "sm80 direct": dict(family="sm80", block_m=64, block_n=64, staged_stores=False),
    "sm80 split": dict(family="sm80", split_k=3),
    "sm75": dict(family="sm75"),
    "sm70": dict(family="sm70"),
}
