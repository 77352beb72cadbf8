// The kernel of family sm90: a producer warpgroup and consumer warpgroups, persistent or not. Read
// gemm_kernel.cuh first; this is the same raster -> main loop -> epilogue, run by specialists, for
// one block tile after the other.
#pragma once

#include "fastgemm/device/cluster_sum.cuh"
#include "fastgemm/device/epilogue.cuh"
#include "fastgemm/device/epilogue_sm90.cuh"
#include "fastgemm/device/fused_tile.cuh"
#include "fastgemm/device/gated_tile.cuh"
#include "fastgemm/device/mainloop_sm90.cuh"
#include "fastgemm/device/mma_sm80.cuh"
#include "fastgemm/device/params.cuh"
#include "fastgemm/device/produce_shifted.cuh"
#include "fastgemm/device/ptx/barrier.cuh"
#include "fastgemm/device/ptx/dependent_launch.cuh"
#include "fastgemm/device/ptx/global.cuh"
#include "fastgemm/device/ptx/shuffle.cuh"
#include "fastgemm/device/ring_sm90.cuh"
#include "fastgemm/device/tile_walk_sm90.cuh"

namespace fastgemm {

// D leaves through panels of every consumer: a warpgroup's for the TMA, otherwise one for each of
// its warps. Those of a persistent CTA lie beside the ring, which the producer is filling for the
// next tile meanwhile. A CTA with a single tile has read all of the ring by then: they take its
// place.
using PanelSm90 = Panel<16, 32>;

template <class Config>
using StorePanelSm90 =
    StorePanel<ClusterSum<Config>::TILES_N*(Config::GATE == Gate::N ? 8 : 16), Config::SWAP_AB>;

template <class Config>
struct SharedSm90 {
  static constexpr int STAGING_BYTES =  // of a consumer
      Config::TMA_STORES ? StorePanelSm90<Config>::BUFFERS * StorePanelSm90<Config>::Layout::BYTES
      : Config::STAGED_STORES ? 4 * PanelSm90::BYTES
                              : 0;
  static constexpr int RING_BYTES = RingSm90<Config>::BYTES + RingSm90<Config>::RAW_BYTES;
  static constexpr int ALL_STAGING_BYTES = RingSm90<Config>::CONSUMERS * STAGING_BYTES;
  static constexpr int STAGING = Config::PERSISTENT ? RING_BYTES : 0;
  static constexpr int SUMS = max_of(RING_BYTES, STAGING + ALL_STAGING_BYTES);
  static constexpr int BARRIERS = SUMS + ClusterSum<Config>::BYTES;
  static constexpr int BYTES =
      max_of(BARRIERS + RingSm90<Config>::BARRIER_BYTES + ClusterSum<Config>::BARRIER_BYTES,
             RingSm90<Config>::READ_BYTES);
};
template <class Config>
constexpr int SHARED_BYTES = SharedSm90<Config>::BYTES;

// What warpgroups give back and take has to add up to what the CTA began with, equally many
// registers for each of its threads: 168 of 384, or 128 of 512. To walk the ring takes few, to
// straighten rows more. Two warpgroups keep what they have: there are enough.
template <class Config>
struct WarpgroupRegisters {
  using Ring = RingSm90<Config>;
  static constexpr bool MOVE = Ring::THREADS > 2 * WARPGROUP_THREADS;
  static constexpr int PRODUCER =
      Ring::CONSUMERS == 2 ? (Ring::SHIFTS ? 88 : 40) : (Ring::SHIFTS ? 104 : 56);
  static constexpr int CONSUMER =
      Ring::CONSUMERS == 2 ? (Ring::SHIFTS ? 168 : 232) : (Ring::SHIFTS ? 200 : 152);
};

// A kernel that waits for memory starts as early as it can and brings its first k-tiles of A (the
// weights of swapped operands) into L2 while the one before it still runs. That is safe even when
// that one writes them: L2 is where writes arrive. Few, since each costs the copy engine as much as
// a load.
constexpr int PREFETCHED_K_TILES = 2;

// Ping-pong: where a warpgroup hands the ring over to the other, one barrier each, behind those of
// the consumers' stores (epilogue_sm90.cuh).
constexpr int HANDOVER_BARRIERS = 3;

// A single tile: where consumers wait until all of them have read the ring.
constexpr int RING_READ_BARRIER = 4;

// What the gates of a warpgroup's sums leave, which is D.
template <class Config, int BLOCKS_M, int TILES_N>
FASTGEMM_DEVICE void store_gated(const GemmParams& p, const TensorMap& d_map,
                                 float (&sum)[BLOCKS_M][TILES_N][8], const TileIndex& index,
                                 int first_row, int first_col, u32 panels, int& panel) {
  const GatedTile<Config> gated(p, index, first_row, first_col, TILES_N * 16);
  float result[BLOCKS_M][(TILES_N + 1) / 2][8];
  gate_sums(gated, sum, result);
  if constexpr (Config::TMA_STORES) {
    epilogue_tma<typename Config::Output, Config::SWAP_AB>(
        result, d_map, panels, index.m * Config::BLOCK_M + first_row,
        (index.n * Config::BLOCK_N + first_col) / 2, static_cast<int>(index.batch), 1.0f, panel,
        NoEpilogue{});
  } else {
    OutputTile<GatedConfig<Config>> out(p, index.batch, gated.m0, gated.n0, gated.rows_left,
                                        gated.cols_left);
    out.alpha = 1.0f;
    if constexpr (Config::GATE == Gate::M)
      store_gated_rows(out, gated.first_row, gated.first_col, result);
    else
      epilogue_staged<PanelSm90, M16n8Accumulators, 64>(
          result, out, gated.first_row, gated.first_col,
          panels + ptx::thread_index() / WARP_THREADS % 4 * PanelSm90::BYTES);
  }
}

// Leaves a warp's partial sums in the workspace as they lie in registers: pairs, of which four
// lanes make a sector of 32 bytes. Its rows are whole sectors, so that no pair reaches beyond one.
template <class Config, int BLOCKS_M, int TILES_N>
FASTGEMM_DEVICE void store_partial_sums(const float (&sum)[BLOCKS_M][TILES_N][8],
                                        const OutputTile<Config>& out, int first_row,
                                        int first_col) {
  const int lane = ptx::thread_index() % WARP_THREADS;
  const int col = first_col + M16n8Accumulators::col(lane, 0);
#pragma unroll
  for (int i = 0; i < 2 * BLOCKS_M; ++i) {  // upper and lower eight rows of each 16
    const int row = first_row + i / 2 * 64 + M16n8Accumulators::row(lane, i % 2);
    u32* at = out.d + row * out.d_m_stride + col;
    const int left = row < out.rows_left ? out.cols_left - col : 0;
#pragma unroll
    for (int j = 0; j < 2 * TILES_N; ++j) {
      const float* pair = sum[i / 2][j / 2] + j % 2 * 4 + i % 2 * 2;
      ptx::st_global_pair_if(8 * j < left, at + 8 * j, __float_as_uint(pair[0]),
                             __float_as_uint(pair[1]));
    }
  }
}

// Stores a warpgroup's sums of a block tile from column `first_col` of it on.
template <class Config, int BLOCKS_M, int TILES_N>
FASTGEMM_DEVICE void store_sums(const GemmParams& p, const TensorMap& d_map,
                                float (&sum)[BLOCKS_M][TILES_N][8], const TileIndex& index,
                                int first_row, int first_col, u32 panels, int& panel) {
  if constexpr (Config::GATE != Gate::NONE) {
    store_gated<Config>(p, d_map, sum, index, first_row, first_col, panels, panel);
  } else if constexpr (Config::TMA_STORES) {
    const FusedTile<Config> fused(p, index, first_row, first_col);
    epilogue_tma<typename Config::Output, Config::SWAP_AB>(
        sum, d_map, panels, index.m * Config::BLOCK_M + first_row,
        index.n * Config::BLOCK_N + first_col, static_cast<int>(index.batch),
        fused.ACTIVE ? 1.0f : p.alpha, panel, fused);
  } else {
    OutputTile<Config> out(p, index);
    if constexpr (Config::WARP_M % 64 != 0)
      out.rows_left = min_of(out.rows_left, first_row + Config::WARP_M);
    const int warp = ptx::thread_index() / WARP_THREADS % 4;
    const int warp_row = first_row + warp * 16;
    if constexpr (Config::STAGED_STORES)
      epilogue_staged<PanelSm90, M16n8Accumulators, 64>(sum, out, warp_row, first_col,
                                                        panels + warp * PanelSm90::BYTES);
    else if constexpr (Config::SPLIT_K)
      store_partial_sums(sum, out, warp_row, first_col);
    else
      epilogue_direct<M16n8Accumulators, 64>(sum, out, warp_row, first_col);
  }
}

template <class Config>
FASTGEMM_DEVICE void gemm_kernel_sm90(const GemmParams& p, const OperandMaps& a_maps,
                                      const OperandMaps& b_maps, const TensorMap& d_map) {
  using Ring = RingSm90<Config>;
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  // Uniform, and so are the descriptors and barriers of the main loop: otherwise every wgmma waits
  // until its descriptors have been moved to uniform registers, which costs narrow tiles a tenth.
  const u32 base = ptx::warp_uniform(ptx::cvta_to_shared(shared_memory));
  using Shared = SharedSm90<Config>;
  const Ring ring = {base, base + Shared::BARRIERS};
  const int thread = ptx::thread_index();
  const int warpgroup = ptx::warp_uniform(thread / WARPGROUP_THREADS);
  const bool is_producer = ptx::warp_uniform(thread / WARP_THREADS) == Ring::CONSUMERS * 4;
  const u32 cta_rank = Ring::CLUSTER > 1 ? ptx::cluster_cta_rank() : 0;
  ClusterSum<Config> cluster_sum = {base + Shared::SUMS, ring.barriers + Ring::BARRIER_BYTES,
                                    k_rank<Config>(cta_rank)};

  if (thread == 0) {
    if constexpr (Config::TMA_STORES) ptx::prefetch_tensormap(d_map);
    if constexpr (Config::CLUSTER_K > 1) cluster_sum.init_barriers();
    ring.init_barriers();
  }
  const auto source_of = [&](const TileIndex& index, const SplitIndex& split) {
    return TileSource<Config>(p, a_maps, b_maps, index, split.batch, cta_rank);
  };
  if (is_producer && ptx::elect_one()) {
    if constexpr (!Config::SHIFT_A) a_maps.prefetch();
    if constexpr (!Config::SHIFT_B) b_maps.prefetch();
  }
  // With multicast, the first fetch already arrives at other CTAs' barriers; where K is shared,
  // only the epilogue does.
  if constexpr (Config::MULTICAST || Config::CLUSTER_K > 1) ptx::cluster_arrive();
  if constexpr (Config::MULTICAST)
    ptx::cluster_wait();
  else
    ptx::bar_sync();
  // All of this overlaps with the kernel before; its results are read and overwritten only behind
  // the wait.
  if constexpr (Config::DEPENDENT_LAUNCH) {
    if constexpr (Config::PREFETCH) {
      ptx::griddepcontrol_launch_dependents();
      if (is_producer) {
        const TileIndex first = TileWalk<Config>(p, cta_rank).index(p);
        const SplitIndex split = split_of<Config>(p, first, cta_rank);
        const TileSource<Config> source = source_of(first, split);
        for (int t = 0; t < min_of(split.k_tiles, PREFETCHED_K_TILES); ++t)
          if (ptx::elect_one()) source.prefetch(split.first_k_tile + t);
      }
    }
    ptx::griddepcontrol_wait();
  }

  RingPosition<Config::NUM_STAGES> at;
  using Registers = WarpgroupRegisters<Config>;
  if (warpgroup >= Ring::CONSUMERS) {
    if constexpr (Registers::MOVE) ptx::setmaxnreg_dec<Registers::PRODUCER>();
    if constexpr (Ring::SHIFTS) {
      if (warpgroup == Ring::CONSUMERS)
        fetch_rows<Config>(ring, p, cta_rank, thread % WARPGROUP_THREADS);
      else
        straighten_rows<Config>(ring, p, a_maps, b_maps, cta_rank,
                                thread - (Ring::CONSUMERS + 1) * WARPGROUP_THREADS);
      if constexpr (Config::DEPENDENT_LAUNCH) ptx::griddepcontrol_launch_dependents();
    } else if (is_producer) {
      for_each_tile<Config>(p, cta_rank, [&](const TileIndex& index) {
        const SplitIndex split = split_of<Config>(p, index, cta_rank);
        produce<Config>(ring, at, source_of(index, split), split);
      });
      // The last bytes are on their way: the next kernel may take the SMs that this one leaves.
      if constexpr (Config::DEPENDENT_LAUNCH && !Config::PREFETCH)
        ptx::griddepcontrol_launch_dependents();
      if constexpr (Config::MULTICAST) ring.wait_until_free(at);
    }
    ptx::bar_warp_sync();
    if constexpr (Config::CLUSTER_K > 1) ptx::cluster_wait();
  } else {
    if constexpr (Registers::MOVE) ptx::setmaxnreg_inc<Registers::CONSUMER>();
    const int first_row = Config::PING_PONG ? 0 : warpgroup * Config::WARP_M;
    if constexpr (Config::CLUSTER_K > 1) ptx::cluster_wait();
    const u32 panels = base + Shared::STAGING + warpgroup * Shared::STAGING_BYTES;
    WarpgroupTile<Config> tile;
    int panel = 0;
    // Ping-pong: every other tile is this warpgroup's, and while it stores one, the other warpgroup
    // multiplies the next. The ring is handed over when the last products of a tile have been
    // started, so that the Tensor Cores go on without a gap, and not before: a warpgroup that runs
    // a lap ahead would take the parity of an earlier phase for that of its own.
    int owner = 0;
    for_each_tile<Config>(p, cta_rank, [&](const TileIndex& index) {
      const int k_tiles = split_of<Config>(p, index, cta_rank).k_tiles;
      if constexpr (Config::PING_PONG) {
        const bool mine = owner == warpgroup;
        const int handover = HANDOVER_BARRIERS + owner;
        owner ^= 1;
        if (!mine) {
          at.advance(k_tiles);
          ptx::bar_sync(handover, 2 * WARPGROUP_THREADS);
          return;
        }
        consume<Config>(ring, at, tile, first_row, k_tiles,
                        [&] { ptx::bar_arrive(handover, 2 * WARPGROUP_THREADS); });
      } else {
        consume<Config>(ring, at, tile, first_row, k_tiles, [] {});
      }
      if constexpr (!Config::PERSISTENT && Shared::STAGING_BYTES > 0)
        ptx::bar_sync(RING_READ_BARRIER, Ring::CONSUMERS * WARPGROUP_THREADS);
      if constexpr (Config::CLUSTER_K == 1) {
        store_sums<Config>(p, d_map, tile.accumulator, index, first_row, 0, panels, panel);
      } else {
        using Sum = ClusterSum<Config>;
        float sum[Sum::BLOCKS_M][Sum::TILES_N][8];
        cluster_sum.exchange(tile.accumulator, sum);
        if (cluster_sum.finishes())
          store_sums<Config>(p, d_map, sum, index, first_row, cluster_sum.first_column(), panels,
                             panel);
      }
    });
    // Shared memory must outlive the copy engine's reads of it.
    if constexpr (Config::TMA_STORES) ptx::bulk_wait_group_read<0>();
    if constexpr (Config::CLUSTER_K > 1) cluster_sum.wait_until_drained();
  }
}

}  // namespace fastgemm
