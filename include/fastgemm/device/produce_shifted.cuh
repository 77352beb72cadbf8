// Family sm90, rows that begin anywhere (SHIFT_A, SHIFT_B): the producer's warps bring what the TMA
// cannot.
#pragma once

#include "fastgemm/device/load_shifted_tile.cuh"
#include "fastgemm/device/mainloop_sm90.cuh"
#include "fastgemm/device/operand.cuh"
#include "fastgemm/device/params.cuh"
#include "fastgemm/device/ptx/barrier.cuh"
#include "fastgemm/device/ptx/cp_async.cuh"
#include "fastgemm/device/ptx/mbarrier.cuh"
#include "fastgemm/device/ptx/shared.cuh"
#include "fastgemm/device/ptx/shuffle.cuh"
#include "fastgemm/device/ptx/tma.cuh"
#include "fastgemm/device/ring_sm90.cuh"
#include "fastgemm/device/shifted_rows.cuh"
#include "fastgemm/device/tile_walk_sm90.cuh"

namespace fastgemm {

//            a warpgroup             one or two more                   consumers
//   memory --fetch_rows()--> raw ring --straighten_rows()--> ring of ring_sm90.cuh --> wgmma
//
// Raw rows lie as in memory. Both rings have NUM_STAGES stages, and each of the raw one has
// barriers of its own. The warps that straighten must have no copies under way: their
// fence.proxy.async would wait for these, a memory latency for every k-tile (measured on an H200).
// They also start the TMA's copies of an operand that it can fetch.

// Starts the copies of a k-tile, of whose depth `k_left` exists.
template <class Loader>
FASTGEMM_DEVICE void fetch_k_tile(Loader& loader, int depth, u32 raw, i64 k_left) {
  if (k_left >= depth)
    loader.fetch_deep_async(raw);
  else
    loader.fetch_async(raw, static_cast<int>(k_left));
}

// Moves a k-tile from the raw ring into the one that wgmma reads; `first`: where its element (0,
// 0), or that of an earlier one, lies in memory. Rows eight apart have one shift: a thread whose
// rows are has one, and knows it before the loop.
template <class Raw, class Tile, int THREADS>
FASTGEMM_DEVICE void straighten(const u16* first, i64 pitch, u32 raw, u32 tile, int thread) {
  using Layout = typename Raw::Layout;
  constexpr int CHUNKS = Raw::COLS / CHUNK_ELEMENTS;  // of a row, straightened
  constexpr int TOTAL = Raw::ROWS * CHUNKS;
  constexpr int ROUNDS = (TOTAL + THREADS - 1) / THREADS;
  constexpr int AT_ONCE = 4;  // chunks of a thread that are under way
  constexpr bool WHOLE_ROWS = THREADS % CHUNKS == 0;
  const u32 first_shift = shift_of(first), step = static_cast<u32>(pitch);
  const auto exists = [&](int i) { return TOTAL % THREADS == 0 || thread + i * THREADS < TOTAL; };
  const auto row = [&](int i) {
    return WHOLE_ROWS ? thread / CHUNKS + i * (THREADS / CHUNKS) : (thread + i * THREADS) / CHUNKS;
  };
  const auto chunk = [&](int i) { return (thread + (WHOLE_ROWS ? 0 : i * THREADS)) % CHUNKS; };
#pragma unroll
  for (int round = 0; round < ROUNDS; round += AT_ONCE) {
    Chunk low[AT_ONCE], high[AT_ONCE];
#pragma unroll
    for (int i = round; i < min_of(round + AT_ONCE, ROUNDS); ++i) {
      if (!exists(i)) continue;
      const u32 from = raw + Layout::offset(row(i), chunk(i));
      low[i - round] = ptx::ld_shared_v4(from);
      high[i - round] = ptx::ld_shared_v4(from + CHUNK_BYTES);
    }
#pragma unroll
    for (int i = round; i < min_of(round + AT_ONCE, ROUNDS); ++i) {
      if (!exists(i)) continue;
      const u32 shift = (first_shift + static_cast<u32>(row(i)) % 8 * step) % CHUNK_ELEMENTS;
      ptx::st_shared_v4(tile + Tile::offset(row(i), chunk(i)),
                        cut_out(low[i - round], high[i - round], static_cast<int>(shift)));
    }
  }
}

// The first producing warpgroup: all k-tiles of this CTA into the raw ring.
template <class Config>
FASTGEMM_DEVICE void fetch_rows(const RingSm90<Config>& ring, const GemmParams& p, u32 cta_rank,
                                int thread) {
  using Ring = RingSm90<Config>;
  using LoaderA = ShiftedTileLoader<typename Ring::RawA, WARPGROUP_THREADS>;
  using LoaderB = ShiftedTileLoader<typename Ring::RawB, WARPGROUP_THREADS>;
  // Groups of copies that are under way while the one before them is waited for.
  constexpr int AHEAD = Config::NUM_STAGES - 2;
  const OperandView a = operand_a(p), b = operand_b(p);
  const u16 *lowest_a = a.lowest(), *lowest_b = b.lowest();
  RingPosition<Config::NUM_STAGES> ahead, at;
  int waiting = 0;
  const auto hand_over = [&] {
    ptx::bar_warp_sync();
    if (thread % WARP_THREADS == 0) ptx::mbarrier_arrive(ring.raw_full(at.stage));
    at.advance();
    --waiting;
  };
  for_each_tile<Config>(p, cta_rank, [&](const TileIndex& index) {
    const SplitIndex split = split_of<Config>(p, index, cta_rank);
    const i64 m = i64(index.m) * Config::BLOCK_M, n = i64(index.n) * Config::BLOCK_N;
    const i64 k = i64(split.first_k_tile) * Config::BLOCK_K;
    LoaderA load_a(thread, lowest_a, a.at(split.batch, m, k), a.outer_stride, a.k_stride,
                   a.outer - m);
    LoaderB load_b(thread, lowest_b, b.at(split.batch, n, k), b.outer_stride, b.k_stride,
                   b.outer - n);
#pragma unroll 1
    for (int t = 0; t < split.k_tiles; ++t, ahead.advance()) {
      const i64 k_left = p.k - k - i64(t) * Config::BLOCK_K;
      ptx::mbarrier_wait(ring.raw_empty(ahead.stage), ahead.lap ^ 1);
      if constexpr (Config::SHIFT_A)
        fetch_k_tile(load_a, Config::BLOCK_K, ring.raw_a(ahead.stage), k_left);
      if constexpr (Config::SHIFT_B)
        fetch_k_tile(load_b, Config::BLOCK_K, ring.raw_b(ahead.stage), k_left);
      ptx::cp_async_commit_group();
      if (++waiting <= AHEAD) continue;
      ptx::cp_async_wait_group<AHEAD>();
      hand_over();
    }
  });
  ptx::cp_async_wait_group<0>();
#pragma unroll 1
  while (waiting > 0) hand_over();
}

// The other producing warpgroups: from there into the ring that wgmma reads.
template <class Config>
FASTGEMM_DEVICE void straighten_rows(const RingSm90<Config>& ring, const GemmParams& p,
                                     const OperandMaps& a_maps, const OperandMaps& b_maps,
                                     u32 cta_rank, int thread) {
  using Ring = RingSm90<Config>;
  constexpr int THREADS = Ring::STRAIGHTENERS * WARP_THREADS;
  const bool first_warp = ptx::warp_uniform(thread / WARP_THREADS) == 0;
  RingPosition<Config::NUM_STAGES> at;
  for_each_tile<Config>(p, cta_rank, [&](const TileIndex& index) {
    const SplitIndex split = split_of<Config>(p, index, cta_rank);
    const TileSource<Config> source(p, a_maps, b_maps, index, split.batch, cta_rank);
    // The shifts of a row are the same in all k-tiles.
    const i64 k = i64(split.first_k_tile) * Config::BLOCK_K;
    const u16* first_a = operand_a(p).at(split.batch, i64(index.m) * Config::BLOCK_M, k);
    const u16* first_b = operand_b(p).at(split.batch, i64(index.n) * Config::BLOCK_N, k);
#pragma unroll 1
    for (int t = 0; t < split.k_tiles; ++t, at.advance()) {
      ptx::mbarrier_wait(ring.empty(at.stage), at.lap ^ 1);
      if (first_warp && ptx::elect_one()) {
        ptx::mbarrier_arrive_expect_tx(ring.full(at.stage), source.bytes());
        source.fetch(ring, at.stage, split.first_k_tile + t);
      }
      ptx::mbarrier_wait(ring.raw_full(at.stage), at.lap);
      if constexpr (Config::SHIFT_A)
        straighten<typename Ring::RawA, typename Ring::A, THREADS>(
            first_a, Config::A_MAJOR == Major::K ? p.a_m_stride : p.a_k_stride,
            ring.raw_a(at.stage), ring.a(at.stage), thread);
      if constexpr (Config::SHIFT_B)
        straighten<typename Ring::RawB, typename Ring::B, THREADS>(
            first_b, Config::B_MAJOR == Major::K ? p.b_n_stride : p.b_k_stride,
            ring.raw_b(at.stage), ring.b(at.stage), thread);
      ptx::fence_proxy_async();  // wgmma reads what ordinary stores have written
      ptx::bar_warp_sync();
      if (thread % WARP_THREADS == 0) {
        ptx::mbarrier_arrive(ring.full(at.stage));
        ptx::mbarrier_arrive(ring.raw_empty(at.stage));
      }
    }
  });
}

}  // namespace fastgemm
