"""Knobs that GPU and emulator share: of family sm80 and the older ones, and swizzles of sm90."""

SM80 = dict(block_m=64, block_n=64, block_k=32, num_stages=3)
KNOBS_SM80 = {
    "default": {},
    "one stage": dict(num_stages=1),
    "two stages": dict(num_stages=2),
    "deep": dict(num_stages=7),
    "no swizzle": dict(swizzle=False),
    "direct stores": dict(staged_stores=False),
    "raster off": dict(raster_group=0),
    "raster 3": dict(raster_group=3),
    "deep k-tile": dict(block_k=128, num_stages=2),
    "tall": dict(block_m=128, block_n=16, warp_m=32, warp_n=16),
    "wide": dict(block_m=16, block_n=256, warp_m=16, warp_n=64),
    "one warp": dict(block_m=32, block_n=32, warp_m=32, warp_n=32),
    "odd tile": dict(block_m=48, block_n=80, warp_m=48, warp_n=16),
    "12 chunks a row": dict(block_m=96, block_n=160, warp_m=48, warp_n=32),
    "split in 3": dict(split_k=3),
    "shifted": dict(shift_a=True, shift_b=True),
    "B shifted, one stage": dict(shift_b=True, num_stages=1, swizzle=False),
    "A shifted, odd tile": dict(shift_a=True, block_m=48, block_n=80, warp_m=48, warp_n=16),
    "shifted, deep k-tile": dict(shift_a=True, shift_b=True, block_k=128, num_stages=2),
}
KNOBS_OLDER = {
    "default": {},
    "one stage": dict(num_stages=1),
    "no swizzle": dict(swizzle=False),
    "direct stores": dict(staged_stores=False),
}

# Family sm90: rows of A and B in shared memory, with k-tiles of one and several of them, multicast
# in slices of rows and of columns, operands swapped, tiles of fewer rows than wgmma's.
SWIZZLES_SM90 = {
    "128": dict(swizzle_bytes=128),
    "64": dict(swizzle_bytes=64),
    "32": dict(swizzle_bytes=32),
    "none": dict(swizzle=False),
    "64, 32 deep": dict(swizzle_bytes=64, block_k=32),
    "32, 32 deep, 2x1": dict(swizzle_bytes=32, block_k=32, cluster_m=2),
    "64, 128 deep, 1x2": dict(swizzle_bytes=64, block_k=128, cluster_n=2),
    "64, 32 deep, 2x1": dict(swizzle_bytes=64, block_k=32, cluster_m=2),
    "none, 2x1": dict(swizzle=False, cluster_m=2),
    "32, swapped, 16 wide": dict(swizzle_bytes=32, swap_ab=True, block_n=16),
    "none, swapped, 48 wide": dict(swizzle=False, swap_ab=True, block_n=48),
    "64, twice 32 rows": dict(swizzle_bytes=64, block_m=64, warp_m=32),
    "none, 16 rows, K in a cluster of 2": dict(swizzle=False, block_m=16, cluster_k=2),
    "64, two tall consumers": dict(swizzle_bytes=64, block_m=256, warp_m=128, block_n=64),
}


def swizzle_case(layout, name, base):
    """(layout, fields, step of k): of a layout that the tile allows, in which k is as uneven as it
    may be: where it is contiguous, whole atoms or, of k-tiles of one, whole chunks."""
    fields = {**base, **SWIZZLES_SM90[name]}
    span = 8 if "swizzle" in fields else fields["swizzle_bytes"] // 2
    depth = fields.get("block_k", 64)
    swapped = fields.get("swap_ab", False)
    a, b = layout
    if fields.get("warp_m", fields["block_m"]) % 64:  # m-contiguous: whole 64 rows
        a, b = (a, "t") if swapped else ("n", b)
    if fields["block_n"] % span:  # n-contiguous: whole rows of the swizzle
        a, b = ("n", b) if swapped else (a, "t")
    layout = a + b
    return layout, fields, 1 if layout == "tn" else 8 if depth == span else span
