// Main loop of family sm80: a ring of NUM_STAGES k-tiles in shared memory, filled by cp.async.
#pragma once

#include "fastgemm/device/config.cuh"
#include "fastgemm/device/load_tile.cuh"
#include "fastgemm/device/ptx/barrier.cuh"
#include "fastgemm/device/ptx/cp_async.cuh"
#include "fastgemm/device/warp_tile.cuh"

namespace fastgemm {

// Stage t % NUM_STAGES holds the t-th k-tile. The last k-tile of K comes first, since it may be
// partial: all others have their whole depth, and the loop's copies need no look at K's end.
//
// Invariant at the top of iteration t:
//   - k-tile t is complete in its stage, and the fragments of its slice 0 are in set 0;
//   - k-tiles t+1 .. t+NUM_STAGES-2 are under way, one cp.async group each;
//   - every warp has read all it needs of k-tile t-1, so its stage may be overwritten.
template <class Config, class LoaderA, class LoaderB>
FASTGEMM_DEVICE void mainloop_sm80(WarpTile<Config>& tile, LoaderA a, LoaderB b, i64 k, u32 ring) {
  using D = Derived<Config>;
  constexpr int STAGES = Config::NUM_STAGES;
  constexpr int AHEAD = max_of(STAGES - 1, 1);  // k-tiles that are fetched before the first is used
  const int k_tiles = static_cast<int>((k + Config::BLOCK_K - 1) / Config::BLOCK_K);
  if (k_tiles == 0) return;

  const auto stage_of = [&](int t) { return ring + t % STAGES * D::STAGE_BYTES; };
  const auto fetch = [&](int t) {
    if (t < k_tiles) {
      a.fetch_deep_async(stage_of(t));
      b.fetch_deep_async(stage_of(t) + D::ATile::Layout::BYTES);
    }
    ptx::cp_async_commit_group();  // an empty group past the end: the count below stays right
  };
  const auto wait_for_next = [&] {
    ptx::cp_async_wait_group<AHEAD - 1>();  // this thread's part of the next k-tile has landed
    ptx::bar_sync();  // everybody's has, and nobody reads the current k-tile any more
  };

  const int k_left = static_cast<int>(k - i64(k_tiles - 1) * Config::BLOCK_K);
  a.seek(k_tiles - 1);
  b.seek(k_tiles - 1);
  a.fetch_async(stage_of(0), k_left);
  b.fetch_async(stage_of(0) + D::ATile::Layout::BYTES, k_left);
  ptx::cp_async_commit_group();
  a.seek(0);
  b.seek(0);
#pragma unroll 1
  for (int t = 1; t < AHEAD; ++t) fetch(t);
  wait_for_next();
  tile.load(stage_of(0), 0, 0);

#pragma unroll 1
  for (int t = 0; t < k_tiles; ++t) {
    if constexpr (STAGES > 1) fetch(t + AHEAD);
#pragma unroll
    for (int slice = 0; slice < D::K_SLICES; slice += 2) {
      tile.load(stage_of(t), slice + 1, 1);
      tile.multiply(0);
      if (slice + 2 < D::K_SLICES) {
        tile.load(stage_of(t), slice + 2, 0);
      } else if (t + 1 < k_tiles) {
        if constexpr (STAGES ==
                      1) {  // the only stage: everybody has to be done before it is filled again
          ptx::bar_sync();
          fetch(t + 1);
        }
        wait_for_next();
        tile.load(stage_of(t + 1), 0, 0);
      }
      tile.multiply(1);
    }
  }
}

}  // namespace fastgemm
