// Main loop of families sm70 and sm75, which have no cp.async: k-tiles travel through registers.
#pragma once

#include "fastgemm/device/config.cuh"
#include "fastgemm/device/load_tile.cuh"
#include "fastgemm/device/ptx/barrier.cuh"
#include "fastgemm/device/warp_tile.cuh"

namespace fastgemm {

// Invariant at the top of iteration t: k-tile t is complete in stage t % NUM_STAGES. While it is
// multiplied, k-tile t+1 is on its way from global memory into registers.
template <class Config, class LoaderA, class LoaderB>
FASTGEMM_DEVICE void mainloop_sm70(WarpTile<Config>& tile, LoaderA a, LoaderB b, i64 k, u32 ring) {
  using D = Derived<Config>;
  static_assert(Config::NUM_STAGES <= 2, "registers hold one k-tile ahead");
  const int k_tiles = static_cast<int>((k + Config::BLOCK_K - 1) / Config::BLOCK_K);
  if (k_tiles == 0) return;

  Chunk a_registers[LoaderA::CHUNKS], b_registers[LoaderB::CHUNKS];
  const auto stage_of = [&](int t) { return ring + t % Config::NUM_STAGES * D::STAGE_BYTES; };
  const auto fetch = [&](int t) {
    const int k_left = static_cast<int>(min_of<i64>(k - i64(t) * Config::BLOCK_K, Config::BLOCK_K));
    a.fetch(a_registers, k_left);
    b.fetch(b_registers, k_left);
  };
  const auto store = [&](int t) {
    a.store(stage_of(t), a_registers);
    b.store(stage_of(t) + D::ATile::Layout::BYTES, b_registers);
  };

  fetch(0);
  store(0);
  ptx::bar_sync();

#pragma unroll 1
  for (int t = 0; t < k_tiles; ++t) {
    const bool more = t + 1 < k_tiles;
    if (more) fetch(t + 1);
    tile.load(stage_of(t), 0, 0);
#pragma unroll
    for (int slice = 0; slice < D::K_SLICES; slice += 2) {
      tile.load(stage_of(t), slice + 1, 1);
      tile.multiply(0);
      if (slice + 2 < D::K_SLICES) tile.load(stage_of(t), slice + 2, 0);
      tile.multiply(1);
    }
    if (more) {
      if constexpr (Config::NUM_STAGES == 1) ptx::bar_sync();  // everybody has read the only stage
      store(t + 1);
    }
    ptx::bar_sync();
  }
}

}  // namespace fastgemm
