"""Faults to plant in the device headers: each is one that a GPU may hide for years."""

from dataclasses import dataclass, field

SMALL_SM80 = dict(family="sm80", block_m=32, block_n=32, block_k=32, num_stages=3)
SMALL_SM90 = dict(
    family="sm90",
    block_m=128,
    block_n=64,
    num_stages=3,
    cluster_m=1,
    cluster_n=1,
    cluster_k=1,
    swap_ab=False,
)


@dataclass
class Fault:
    file: str
    old: str
    new: str
    kinds: tuple  # of the EmulatorError; "wrong" stands for a wrong result
    arch: str = "sm_80"
    shape: tuple = (70, 50, 200)
    config: dict = field(default_factory=dict)
    times: int = 1  # that `old` stands in the file; all are replaced


def sm80(file, old, new, *kinds, shape=(70, 50, 200), times=1, **config):
    return Fault(file, old, new, kinds, "sm_80", shape, {**SMALL_SM80, **config}, times)


def sm90(file, old, new, *kinds, shape=(200, 136, 328), times=1, **config):
    return Fault(file, old, new, kinds, "sm_90", shape, {**SMALL_SM90, **config}, times)


def gemv(file, old, new, *kinds, shape=(3, 72, 1600)):
    return Fault(file, old, new, kinds, "sm_80", shape, dict(family="gemv", block_m=4))


LOOP_80, LOOP_90 = "mainloop_sm80.cuh", "mainloop_sm90.cuh"
KERNEL_90, EPILOGUE_90 = "gemm_kernel_sm90.cuh", "epilogue_sm90.cuh"
SUM_90, DESCRIPTOR = "cluster_sum.cuh", "wgmma_descriptor.cuh"
NOT_RIGHT = ("wrong", "uninitialized")
OPERANDS = "epilogue_operands.cuh"
# 300 tiles: two or three for each of 132 SMs, and one and a half laps of the ring for each tile.
PING_PONG = dict(shape=(120, 320, 192), ping_pong=True, block_m=8, block_n=16, num_stages=2)
FUSED = dict(shape=(70, 85, 64), fused=True)
FUSED_WIDE = dict(shape=(70, 176, 64), fused=True, tma_stores=True)
SHIFTED = "load_shifted_tile.cuh"
PRODUCE = "produce_shifted.cuh"
AWKWARD_90 = dict(shape=(200, 136, 331), gap=1, shift_a=True, shift_b=True)
AWKWARD = dict(shape=(70, 50, 203), gap=1, shift_a=True, shift_b=True)

FAULTS = {
    "cp.async is not waited for": sm80(
        LOOP_80, "ptx::cp_async_wait_group<AHEAD - 1>();", "", "race"
    ),
    "cp.async is waited for one group too few": sm80(
        LOOP_80, "wait_group<AHEAD - 1>", "wait_group<AHEAD>", "race"
    ),
    "no barrier behind the wait": sm80(
        LOOP_80,
        "ptx::bar_sync();  // everybody's has",
        "// everybody's has",
        "race",
        "uninitialized",
    ),
    "no group where nothing is fetched": sm80(
        LOOP_80,
        "    ptx::cp_async_commit_group();  // an empty group",
        "    if (t < k_tiles) ptx::cp_async_commit_group();  // an empty group",
        "race",
    ),
    "one stage: filled again while it is read": sm80(
        LOOP_80,
        "          ptx::bar_sync();\n          fetch",
        "          fetch",
        "race",
        num_stages=1,
    ),
    "a stage less than the walk uses": sm80(
        LOOP_80, "ring + t % STAGES * D", "ring + t % (STAGES + 1) * D", "out of bounds", "race"
    ),
    "swizzled on one side only": sm80(
        "mma_sm80.cuh",
        "r, shared_tile + Layout::offset(outer + outer_half + lane % 8,",
        "r, shared_tile + SharedLayout<Layout::ROWS, Layout::COLS, false>::offset("
        "outer + outer_half + lane % 8,",
        "wrong",
    ),
    "one row too many is read": sm80(
        "load_tile.cuh",
        "min_of<i64>(outer_left, 1 << 30))",
        "min_of<i64>(outer_left + 1, 1 << 30))",
        "out of bounds",
    ),
    "one element too many of a row is read": sm80(
        "load_tile.cuh",
        "min_of(cols_left - col(i), CHUNK_ELEMENTS)",
        "min_of(cols_left - col(i) + 1, CHUNK_ELEMENTS)",
        "out of bounds",
        shape=(70, 50, 203),
    ),
    "a shifted row is read from below the operand": sm80(
        SHIFTED, "if (chunk < lowest_)", "if (false)", "out of bounds", **AWKWARD
    ),
    "one element too many of a shifted row is read": sm80(
        SHIFTED,
        "Tile::COLS) - col + shift",
        "Tile::COLS) + 1 - col + shift",
        "out of bounds",
        **AWKWARD,
    ),
    "one shifted row too many is read": sm80(
        SHIFTED, "row < rows_left ?", "row <= rows_left ?", "out of bounds", times=3, **AWKWARD
    ),
    "a row is gathered with its neighbour's shift": sm80(
        "shifted_rows.cuh",
        "shift_of(origin + row *",
        "shift_of(origin + (row + 1) *",
        "wrong",
        **AWKWARD,
    ),
    "rows are handed over before they have come": sm90(
        PRODUCE, "      ptx::cp_async_wait_group<AHEAD>();\n", "", "race", **AWKWARD_90
    ),
    "rows are straightened before they are handed over": sm90(
        PRODUCE, "ptx::mbarrier_wait(ring.raw_full(at.stage), at.lap);", "",
        "race", "uninitialized", **AWKWARD_90,
    ),
    "rows are fetched where others are being straightened": sm90(
        PRODUCE, "ptx::mbarrier_wait(ring.raw_empty(ahead.stage), ahead.lap ^ 1);", "", "race",
        **AWKWARD_90,
    ),
    "straightened rows without fence.proxy.async": sm90(
        PRODUCE, "ptx::fence_proxy_async();", "", "proxy", "uninitialized", **AWKWARD_90
    ),
    "fewer arrivals than warps that straighten": sm90(
        "ring_sm90.cuh",
        "SHIFTS ? 1 + STRAIGHTENERS : 1",
        "SHIFTS ? 2 : 1",
        "deadlock",
        **AWKWARD_90,
    ),
    "rows are straightened into a stage that is read": sm90(
        PRODUCE, "ptx::mbarrier_wait(ring.empty(at.stage), at.lap ^ 1);", "", "race", **AWKWARD_90
    ),
    "a row is straightened by its neighbour's shift": sm90(
        PRODUCE, "static_cast<u32>(row(i)) % 8 * step", "static_cast<u32>(row(i) + 1) % 8 * step",
        "wrong", **AWKWARD_90,
    ),
    "straightened chunks are not swizzled": sm90(
        "ring_sm90.cuh", "SharedLayout<ROWS, SPAN, true>", "SharedLayout<ROWS, SPAN, false>",
        "wrong", **AWKWARD_90,
    ),
    "one row too many is written": sm80(
        "epilogue.cuh", "row < rows_left ?", "row <= rows_left ?", "out of bounds"
    ),
    "a column is left out": sm80(
        "epilogue.cuh", "cols_left - col : 0", "cols_left - col - 1 : 0", "unwritten"
    ),
    "a tile is computed twice": sm80(
        "raster.cuh", "const u32 tile = cta - batch * tiles;", "const u32 tile = cta / 2;", "race"
    ),
    "the ring is staged over while it is read": sm80(
        "gemm_kernel.cuh", "    ptx::bar_sync();  // the last", "    // the last", "race"
    ),
    "a panel is read before it is written": sm80(
        "epilogue.cuh",
        "buffer);\n      ptx::bar_warp_sync();",
        "buffer);",
        "race",
        "uninitialized",
    ),
    "a panel is written before it has been read": sm80(
        "epilogue.cuh",
        "      ptx::bar_warp_sync();  // the panel before",
        "      // the panel before",
        "race",
        block_m=64,
        block_n=64,
        num_stages=1,
        warp_m=64,
        warp_n=64,
    ),
    "a panel's pitch breaks the alignment": sm80(
        "epilogue.cuh", "PITCH = COLS + 8", "PITCH = COLS + 7", "misaligned"
    ),
    "a lane leaves the warp out": sm80(
        "warp_tile.cuh",
        "  FASTGEMM_DEVICE void multiply(int set) {\n",
        "  FASTGEMM_DEVICE void multiply(int set) {\n"
        "    if (ptx::thread_index() == 37) return;\n",
        "divergence",
        "deadlock",
    ),
    "half of the CTA at a barrier": sm80(
        LOOP_80,
        "ptx::bar_sync();  // everybody's has",
        "if (ptx::thread_index() < 64) ptx::bar_sync();  // everybody's has",
        "deadlock",
        "race",
        "uninitialized",
    ),
    "sm75: registers are stored before the stage was read": Fault(
        "mainloop_sm70.cuh",
        "      if constexpr (Config::NUM_STAGES == 1) ptx::bar_sync();",
        "",
        ("race",),
        "sm_75",
        (70, 50, 200),
        dict(block_m=64, block_n=32, block_k=32, num_stages=1),
    ),
    "the copy engine's bytes are not waited for": sm90(
        LOOP_90, "ptx::mbarrier_wait(ring.full(at.stage), at.lap);", "", "uninitialized", "race"
    ),
    "a stage is filled while it is multiplied": sm90(
        LOOP_90, "ptx::mbarrier_wait(ring.empty(at.stage), at.lap ^ 1);", "", "race"
    ),
    "a stage is released before its products are done": sm90(
        LOOP_90, "ptx::wgmma_wait_group<UNDER_WAY>();", "ptx::wgmma_wait_group<2>();", "race"
    ),
    "fewer arrivals than readers": sm90(
        "ring_sm90.cuh",
        "CONSUMERS * 4 * RECEIVERS",
        "CONSUMERS * 4 * RECEIVERS - 1",
        "race",
        "mbarrier",
    ),
    "more bytes announced than come": sm90(
        LOOP_90,
        "ring.full(at.stage), source.bytes())",
        "ring.full(at.stage), source.bytes() + 16)",
        "deadlock",
    ),
    "whole boxes are announced at the edge": sm90(
        LOOP_90, "source.bytes())", "RingSm90<Config>::STAGE_BYTES)", "deadlock"
    ),
    "at the edge, the rows beyond the last eight are forgotten": sm90(
        "ring_sm90.cuh",
        "/ SLICES) + 7) / 8 * 8",
        "/ SLICES)) / 8 * 8",
        "mbarrier",
        "deadlock",
        shape=(197, 136, 328),
    ),
    "accumulators are read while products are under way": sm90(
        LOOP_90, "  ptx::wgmma_wait_group<0>();", "", "race", "wrong", "uninitialized"
    ),
    "no wgmma.fence": sm90(LOOP_90, "    ptx::wgmma_fence();\n", "", "race"),
    "the descriptor's stride is wrong": sm90(
        "wgmma_descriptor.cuh",
        "ROWS_8 = 8 * Tile::ROW_BYTES",
        "ROWS_8 = 4 * Tile::ROW_BYTES",
        "wrong",
        "uninitialized",
    ),
    "a descriptor of 64-byte rows names the 128-byte swizzle": sm90(
        DESCRIPTOR, "Tile::ROW_BYTES == 64 ? 2", "Tile::ROW_BYTES == 64 ? 1", *NOT_RIGHT,
        swizzle_bytes=64, shape=(200, 136, 320),
    ),
    "a descriptor of 64-byte rows names the 32-byte swizzle": sm90(
        DESCRIPTOR, "Tile::ROW_BYTES == 64 ? 2", "Tile::ROW_BYTES == 64 ? 3", *NOT_RIGHT,
        swizzle_bytes=64, shape=(200, 136, 320), layout="tn",
    ),
    "a descriptor of 32-byte rows names no swizzle": sm90(
        DESCRIPTOR, "Tile::ROW_BYTES == 32 ? 3", "Tile::ROW_BYTES == 32 ? 0", *NOT_RIGHT,
        swizzle_bytes=32, shape=(200, 136, 320),
    ),
    "without a swizzle, the columns of a k-slice are in the wrong place": sm90(
        DESCRIPTOR, "COLUMN = Tile::COLUMN_BYTES / 16", "COLUMN = Tile::COLUMN_BYTES / 32",
        *NOT_RIGHT, swizzle=False,
    ),
    "without a swizzle, MN-major offsets keep their places": sm90(
        DESCRIPTOR, "Tile::ROW_BYTES == 16;", "false;", *NOT_RIGHT, swizzle=False, layout="tn",
    ),
    "64-byte rows: the second k-slice is where 128-byte rows have it": sm90(
        DESCRIPTOR, "k / Tile::SPAN * Tile::COLUMN_BYTES + k % Tile::SPAN * 2",
        "k / 64 * Tile::COLUMN_BYTES + k % 64 * 2", *NOT_RIGHT,
        swizzle_bytes=64, shape=(200, 136, 320),
    ),
    "stores without fence.proxy.async": sm90(
        EPILOGUE_90, "      ptx::fence_proxy_async();\n", "", "proxy"
    ),
    "a panel leaves before all have written it": sm90(
        EPILOGUE_90,
        "      ptx::fence_proxy_async();\n      ptx::bar_sync(named_barrier, WARPGROUP_THREADS);\n",
        "      ptx::fence_proxy_async();\n",
        "race",
        "uninitialized",
    ),
    "a panel is written while the copy engine reads it": sm90(
        EPILOGUE_90,
        "bulk_wait_group_read<Panel::BUFFERS - 1>()",
        "bulk_wait_group_read<Panel::BUFFERS>()",
        "race",
        shape=(512, 256, 64),
        block_n=256,
    ),
    "the CTA ends while the copy engine reads": sm90(
        KERNEL_90, "ptx::bulk_wait_group_read<0>();", "{}", "race"
    ),
    "barriers are not fenced": sm90(
        "ring_sm90.cuh", "    ptx::fence_mbarrier_init();\n", "", "proxy"
    ),
    "barriers are used before they are there": sm90(
        KERNEL_90, "  else\n    ptx::bar_sync();\n", "  else {}\n", "race", "mbarrier"
    ),
    "reads before the kernel ahead has ended": sm90(
        KERNEL_90, "    ptx::griddepcontrol_wait();\n", "", "race"
    ),
    "partial sums are read before they are written": sm90(
        "reduce_splits.cuh", "ptx::griddepcontrol_wait();", "{}", "race", split_k=2, times=2
    ),
    "an epilogue reads beyond a row": sm90(
        OPERANDS, "p + (Columns::at(i) < valid ? Columns::at(i) : 0) * stride",
        "p + Columns::at(i) * stride", "out of bounds", **FUSED,
    ),
    "an epilogue keeps what is beyond a row": sm90(
        OPERANDS,
        "if (Columns::at(i) < valid)\n",
        "\n",
        "race",
        "out of bounds",
        "uninitialized",
        **FUSED,
    ),
    "a lane keeps the columns of its neighbour": sm90(
        "quad_columns.cuh", "if (upper)\n", "if (!upper)\n", *NOT_RIGHT, **FUSED_WIDE
    ),
    "four lanes read more columns than exist": sm90(
        "quad_columns.cuh", "const int first = 8 * lane() < valid ? 8 * lane() : 0;",
        "const int first = 8 * lane();", "out of bounds", **FUSED_WIDE,
    ),
    "an epilogue's row is the one above": sm90(
        OPERANDS, "load_one<Element>(first_ + row *", "load_one<Element>(first_ + (row ^ 1) *",
        "wrong", **FUSED,
    ),
    "a split is left out": sm80(
        "reduce_splits.cuh",
        "lanes < partial.splits ? __uint",
        "lanes + 1 < partial.splits ? __uint",
        "wrong",
        split_k=3,
    ),
    "a lane's share of the splits is left out": sm80(
        "reduce_splits.cuh",
        "mask < lanes; mask *= 2",
        "mask < lanes; mask *= 4",
        "wrong",
        shape=(70, 50, 640),
        split_k=10,
    ),
    "more registers than there are": sm90(
        KERNEL_90,
        "SHIFTS ? 168 : 232",
        "SHIFTS ? 168 : 240",
        "deadlock",
    ),
    "the producer gives back too few registers": sm90(
        KERNEL_90,
        "SHIFTS ? 88 : 40",
        "SHIFTS ? 88 : 48",
        "deadlock",
    ),
    "the CTA's rank reaches the descriptor": sm90(
        "wgmma_descriptor.cuh",
        "((tile & 0x3ffff) >> 4)",
        "(u64(tile) >> 4)",
        "wrong",
        "uninitialized",
        "emulator",
        layout="nn",
        block_n=128,
        cluster_m=2,
    ),
    "a single tile: stores are staged where others still read": sm90(
        KERNEL_90,
        "        ptx::bar_sync(RING_READ_BARRIER, Ring::CONSUMERS * WARPGROUP_THREADS);\n",
        "        ;\n",
        "race",
        *NOT_RIGHT,
        block_n=128,
    ),
    "a box begins between two chunks of 16 bytes": sm90(
        LOOP_90,
        "(m, t * Config::BLOCK_K, n_rank, a_batch, m_present,",
        "(m, t * Config::BLOCK_K + 4, n_rank, a_batch, m_present,",
        "misaligned",
    ),
    "ping-pong: the ring is taken before it is handed over": sm90(
        KERNEL_90,
        "          ptx::bar_sync(handover, 2 * WARPGROUP_THREADS);\n",
        "",
        "race",
        "uninitialized",
        "deadlock",
        **PING_PONG,
    ),
    "ping-pong: the other warpgroup's k-tiles are not passed over": sm90(
        KERNEL_90,
        "          at.advance(k_tiles);\n",
        "",
        "race",
        "deadlock",
        *NOT_RIGHT,
        **PING_PONG,
    ),
    "multicast to the wrong CTA": sm90(
        LOOP_90,
        "static_cast<u16>(COLUMN << n_rank * Config::CLUSTER_M)",
        "static_cast<u16>(1)",
        "deadlock",
        "race",
        cluster_m=2,
    ),
    "the neighbour's stage is overwritten": sm90(
        LOOP_90,
        "ptx::mbarrier_arrive_cluster(ring.empty(stage), lane)",
        "ptx::mbarrier_arrive(ring.empty(stage))",
        "race",
        cluster_m=2,
    ),
    "a CTA ends while its neighbour arrives": sm90(
        KERNEL_90,
        "      if constexpr (Config::MULTICAST) ring.wait_until_free(at);\n",
        "",
        "race",
        cluster_m=2,
        shape=(200, 136, 640),
    ),
    "sums are read before they have come": sm90(
        SUM_90,
        "      ptx::mbarrier_wait(arrived(), lap);\n",
        "",
        "race",
        "uninitialized",
        cluster_k=2,
    ),
    "sums are sent while those before are read": sm90(
        SUM_90,
        "    wait_until_drained();  // of the block tile before\n",
        "",
        "race",
        cluster_k=2,
        shape=(128, 64 * 140, 128),
    ),
    "more sums are announced than come": sm90(
        SUM_90,
        "arrive_expect_tx(arrived(), BYTES)",
        "arrive_expect_tx(arrived(), BYTES + 16)",
        "deadlock",
        cluster_k=2,
    ),
    "sums go to the wrong CTA": sm90(
        SUM_90,
        "                           j / TILES_N,\n",
        "                           0,\n",
        "deadlock",
        "race",
        "mbarrier",
        cluster_k=2,
    ),
    "the cluster's barriers are not waited for": sm90(
        KERNEL_90,
        "    if constexpr (Config::CLUSTER_K > 1) ptx::cluster_wait();\n    const u32 panels",
        "    const u32 panels",
        "race",
        cluster_k=2,
    ),
    "warps add up before all have their sums": gemv(
        "gemv_kernel.cuh", "  ptx::bar_sync();\n", "", "race", "uninitialized"
    ),
    "a row too many on CUDA cores": gemv(
        "gemv_reads.cuh", "m < rows && k + CHUNK", "m <= rows && k + CHUNK", "out of bounds"
    ),
    "a copy leaves its last chunk out": Fault(
        "repack.cuh",
        "if (left <= i * step) return;",
        "if (left <= i * step + 8) return;",
        ("unwritten",),
        "sm_80",
        (70, 50, 200),
        dict(repack_a=True),
    ),
}
