"""Knobs of family sm80 and the older ones, one at a time: for the GPU and for the emulator."""

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
}
KNOBS_OLDER = {
    "default": {},
    "one stage": dict(num_stages=1),
    "no swizzle": dict(swizzle=False),
    "direct stores": dict(staged_stores=False),
}
