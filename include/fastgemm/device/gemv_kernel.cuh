// The kernel of family gemv: a few rows of A times B, where reading B once is most of the work.
#pragma once

#include "fastgemm/device/epilogue.cuh"
#include "fastgemm/device/gemv_reads.cuh"
#include "fastgemm/device/gemv_sums.cuh"
#include "fastgemm/device/params.cuh"
#include "fastgemm/device/ptx/barrier.cuh"
#include "fastgemm/device/ptx/dependent_launch.cuh"
#include "fastgemm/device/ptx/shared.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/raster.cuh"

namespace fastgemm {

// Bytes of dynamic shared memory: the sums of all warps along K, [WARPS_K][BLOCK_M][BLOCK_N].
template <class Config>
constexpr int SHARED_BYTES = GemvShape<Config>::WARPS_K * Config::BLOCK_M * Config::BLOCK_N *
                             static_cast<int>(sizeof(float));

template <class Config>
FASTGEMM_DEVICE void gemv_kernel(const GemmParams& p) {
  using Shape = GemvShape<Config>;
  constexpr int TILE = Config::BLOCK_M * Config::BLOCK_N;
  extern __shared__ Chunk shared_memory[];
  const u32 shared = ptx::cvta_to_shared(shared_memory);
  const int warp = ptx::thread_index() / WARP_THREADS, lane = ptx::thread_index() % WARP_THREADS;
  const int warp_n = warp / Shape::WARPS_K, warp_k = warp % Shape::WARPS_K;
  const int lane_k = Shape::lane_k(lane);

  const TileIndex index = raster<0>(ptx::block_index(), p.tiles_m, p.tiles_n);
  const int k_tiles = static_cast<int>((p.k + Config::BLOCK_K - 1) / Config::BLOCK_K);
  const SplitIndex split =
      split_index<Config::SPLIT_K>(index.batch, k_tiles, p.splits, p.k_tiles_of_split);
  const int k_begin = split.first_k_tile * Config::BLOCK_K;
  const int k_end =
      static_cast<int>(min_of<i64>(p.k, i64(k_begin) + i64(split.k_tiles) * Config::BLOCK_K));
  const int warp_first_k = k_begin + warp_k * Shape::WARP_K;
  const int col = warp_n * Config::WARP_N + Shape::lane_col(lane);  // of the tile
  const GemvReads<Config> reads(p, split.batch, i64(index.m) * Config::BLOCK_M,
                                i64(index.n) * Config::BLOCK_N + col, k_end);

  // B's first chunks come into L2 while the kernel before still runs. That is safe even when that
  // one writes them: L2 is where writes arrive.
  if constexpr (Config::DEPENDENT_LAUNCH) {
    ptx::griddepcontrol_launch_dependents();
    reads.prefetch_b(warp_first_k + lane_k * CHUNK_ELEMENTS);
    ptx::griddepcontrol_wait();
  }
  typename GemvSums<Config>::Type sums;
  sums.clear();
#pragma unroll 1
  for (int k = warp_first_k; k < k_end; k += Config::BLOCK_K)  // the whole warp or none of it
    sums.multiply(reads, k + lane_k * CHUNK_ELEMENTS);
  if (warp_k == Shape::WARPS_K - 1) sums.multiply_tail(reads, lane_k);

  // The warps along K are added up in their order.
  sums.store(shared + warp_k * TILE * 4, col, lane);
  ptx::bar_sync();
  const OutputTile<Config> out(p, index);
  for (int i = ptx::thread_index(); i < TILE; i += Shape::THREADS) {
    float total[1] = {0};
#pragma unroll
    for (int w = 0; w < Shape::WARPS_K; ++w)
      total[0] += ptx::ld_shared_f32(shared + (w * TILE + i) * 4);
    out.template finish<1>(i / Config::BLOCK_N, i % Config::BLOCK_N, total);
  }
}

}  // namespace fastgemm
