// The kernel of family sm90: persistent CTAs, a producer warpgroup and consumer warpgroups. Read
// gemm_kernel.cuh first; this is the same raster -> main loop -> epilogue, run by specialists, for
// one block tile after the other.
#pragma once

#include "fastgemm/device/epilogue.cuh"
#include "fastgemm/device/epilogue_sm90.cuh"
#include "fastgemm/device/fused_tile.cuh"
#include "fastgemm/device/mainloop_sm90.cuh"
#include "fastgemm/device/mma_sm80.cuh"
#include "fastgemm/device/params.cuh"
#include "fastgemm/device/ptx/barrier.cuh"
#include "fastgemm/device/ptx/dependent_launch.cuh"
#include "fastgemm/device/raster.cuh"
#include "fastgemm/device/ring_sm90.cuh"

namespace fastgemm {

// D leaves through panels of every consumer beside the ring, which the producer is filling for the
// next tile meanwhile: a warpgroup's for the TMA, otherwise one for each of its warps.
using PanelSm90 = Panel<16, 32>;

template <class Config>
constexpr int CONSUMER_STAGING_BYTES =
    Config::TMA_STORES      ? StorePanel<Config::BLOCK_N, Config::SWAP_AB>::BUFFERS *
                                  StorePanel<Config::BLOCK_N, Config::SWAP_AB>::Layout::BYTES
    : Config::STAGED_STORES ? 4 * PanelSm90::BYTES
                            : 0;
template <class Config>
constexpr int STAGING_BYTES = RingSm90<Config>::CONSUMERS * CONSUMER_STAGING_BYTES<Config>;
template <class Config>
constexpr int SHARED_BYTES =
    RingSm90<Config>::STAGING_OFFSET + STAGING_BYTES<Config> + 2 * Config::NUM_STAGES * 8;

// Narrow tiles (decode) wait for memory, so that such a kernel starts as early as it can and brings
// its first k-tiles into L2 while the one before it still runs. That is safe even when that one
// writes them: L2 is where writes arrive. Few, since each costs the copy engine as much as a load.
template <class Config>
constexpr bool NARROW = Config::BLOCK_N <= 32;
constexpr int PREFETCHED_K_TILES = 2;

// Clusters take cluster tiles, CLUSTER_M x CLUSTER_N block tiles, in the order of the raster.
template <class Config>
FASTGEMM_DEVICE u32 cluster_rows(const GemmParams& p) {
  return (p.tiles_m + Config::CLUSTER_M - 1) / Config::CLUSTER_M;
}
template <class Config>
FASTGEMM_DEVICE u32 cluster_cols(const GemmParams& p) {
  return (p.tiles_n + Config::CLUSTER_N - 1) / Config::CLUSTER_N;
}

// The block tile of CTA `cta_rank` in cluster tile `i`.
template <class Config>
FASTGEMM_DEVICE TileIndex tile_index(const GemmParams& p, u32 i, u32 cta_rank) {
  TileIndex index =
      raster<Config::RASTER_GROUP>(i, cluster_rows<Config>(p), cluster_cols<Config>(p));
  index.m = index.m * Config::CLUSTER_M + cta_rank % Config::CLUSTER_M;
  index.n = index.n * Config::CLUSTER_N + cta_rank / Config::CLUSTER_M;
  return index;
}

// Walks the block tiles of this CTA: clusters take turns.
template <class Config, class Body>
FASTGEMM_DEVICE void for_each_tile(const GemmParams& p, u32 cta_rank, Body body) {
  constexpr u32 CLUSTER = RingSm90<Config>::CLUSTER;
  const u32 tiles = cluster_rows<Config>(p) * cluster_cols<Config>(p) * static_cast<u32>(p.batch) *
                    (Config::SPLIT_K ? p.splits : 1);
  for (u32 i = ptx::block_index() / CLUSTER; i < tiles; i += ptx::grid_size() / CLUSTER)
    body(tile_index<Config>(p, i, cta_rank));
}

template <class Config>
FASTGEMM_DEVICE void gemm_kernel_sm90(const GemmParams& p, const TensorMap& a_map,
                                      const TensorMap& b_map, const TensorMap& d_map) {
  using Ring = RingSm90<Config>;
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  const u32 base = ptx::cvta_to_shared(shared_memory);
  const u32 staging = base + Ring::STAGING_OFFSET;
  const Ring ring = {base, staging + STAGING_BYTES<Config>};
  const int thread = ptx::thread_index();
  const int warpgroup = thread / WARPGROUP_THREADS;
  const bool is_producer = thread == Ring::CONSUMERS * WARPGROUP_THREADS;
  const u32 cta_rank = Ring::CLUSTER > 1 ? ptx::cluster_cta_rank() : 0;
  const int all_k_tiles = static_cast<int>((p.k + Config::BLOCK_K - 1) / Config::BLOCK_K);
  const auto split_of = [&](const TileIndex& index) {
    return split_index<Config::SPLIT_K>(index.batch, all_k_tiles, p.splits, p.k_tiles_of_split);
  };

  if (thread == 0) {
    ptx::prefetch_tensormap(a_map);
    ptx::prefetch_tensormap(b_map);
    if constexpr (Config::TMA_STORES) ptx::prefetch_tensormap(d_map);
    ring.init_barriers();
  }
  if constexpr (Ring::CLUSTER > 1)
    ptx::cluster_sync();
  else
    ptx::bar_sync();
  // All of this overlaps with the kernel before; its results are read and overwritten only behind
  // the wait.
  if constexpr (Config::DEPENDENT_LAUNCH) {
    if constexpr (NARROW<Config>) {
      ptx::griddepcontrol_launch_dependents();
      if (is_producer) {
        const TileIndex first = tile_index<Config>(p, ptx::block_index() / Ring::CLUSTER, cta_rank);
        const SplitIndex split = split_of(first);
        const TileSource<Config> source(p, a_map, b_map, first, split.batch, cta_rank);
        for (int t = 0; t < min_of(split.k_tiles, PREFETCHED_K_TILES); ++t)
          source.prefetch(split.first_k_tile + t);
      }
    }
    ptx::griddepcontrol_wait();
  }

  RingPosition<Config::NUM_STAGES> at;
  if (warpgroup == Ring::CONSUMERS) {
    if constexpr (Ring::CONSUMERS > 1) ptx::setmaxnreg_dec<Ring::CONSUMERS == 2 ? 40 : 32>();
    if (is_producer) {
      for_each_tile<Config>(p, cta_rank, [&](const TileIndex& index) {
        const SplitIndex split = split_of(index);
        produce<Config>(ring, at, TileSource<Config>(p, a_map, b_map, index, split.batch, cta_rank),
                        split);
      });
      // The last bytes are on their way: the next kernel may take the SMs that this one leaves.
      if constexpr (Config::DEPENDENT_LAUNCH && !NARROW<Config>)
        ptx::griddepcontrol_launch_dependents();
    }
    ptx::bar_warp_sync();
  } else {
    if constexpr (Ring::CONSUMERS > 1) ptx::setmaxnreg_inc<Ring::CONSUMERS == 2 ? 232 : 160>();
    const int first_row = warpgroup * Config::WARP_M;
    const u32 panels = staging + warpgroup * CONSUMER_STAGING_BYTES<Config>;
    WarpgroupTile<Config> tile;
    int panel = 0;
    for_each_tile<Config>(p, cta_rank, [&](const TileIndex& index) {
      consume<Config>(ring, at, tile, first_row, split_of(index).k_tiles);
      if constexpr (Config::TMA_STORES) {
        const FusedTile<typename Config::Epilogue> fused(
            p, index.batch, i64(index.m) * Config::BLOCK_M, i64(index.n) * Config::BLOCK_N,
            first_row + thread / WARP_THREADS % 4 * 16);
        epilogue_tma<typename Config::Output, Config::SWAP_AB>(
            tile.accumulator, d_map, panels, index.m * Config::BLOCK_M + first_row,
            index.n * Config::BLOCK_N, static_cast<int>(index.batch), fused.ACTIVE ? 1.0f : p.alpha,
            panel, fused);
      } else {
        const OutputTile<Config> out(p, index);
        const int warp = thread / WARP_THREADS % 4;
        const int warp_row = first_row + warp * 16;
        if constexpr (Config::STAGED_STORES)
          epilogue_staged<PanelSm90, M16n8Accumulators, 64>(tile.accumulator, out, warp_row, 0,
                                                            panels + warp * PanelSm90::BYTES);
        else
          epilogue_direct<M16n8Accumulators, 64>(tile.accumulator, out, warp_row, 0);
      }
    });
    // Shared memory must outlive the copy engine's reads of it.
    if constexpr (Config::TMA_STORES) ptx::bulk_wait_group_read<0>();
  }
  // A CTA must not end while its neighbour still arrives at its barriers.
  if constexpr (Ring::CLUSTER > 1) ptx::cluster_sync();
}

}  // namespace fastgemm
