// A warp's part of the block tile: its accumulators and fragments, and the product of one k-slice.
#pragma once

#include "fastgemm/device/config.cuh"
#include "fastgemm/device/mma_sm70.cuh"
#include "fastgemm/device/mma_sm80.cuh"
#include "fastgemm/device/ptx/thread.cuh"

namespace fastgemm {

template <int FAMILY, class Input>
struct MmaOf {
  using Type = MmaSm80<Input>;
};
template <class Input>
struct MmaOf<75, Input> {
  using Type = MmaSm75<Input>;
};
template <class Input>
struct MmaOf<70, Input> {
  using Type = MmaSm70<Input>;
};

template <class Config>
struct WarpTile {
  using D = Derived<Config>;
  using Mma = typename MmaOf<Config::FAMILY, typename Config::Input>::Type;

  float accumulator[D::MMA_TILES_M][D::MMA_TILES_N][8];
  // Two sets: while the Tensor Cores multiply k-slice s from set s % 2, slice s + 1 is loaded into
  // the other.
  typename Mma::Fragment a[2][D::MMA_TILES_M];
  typename Mma::Fragment b[2][D::MMA_TILES_N];

  FASTGEMM_DEVICE static int warp() { return ptx::thread_index() / WARP_THREADS; }
  FASTGEMM_DEVICE static int first_row() { return warp() / D::WARPS_N * Config::WARP_M; }
  FASTGEMM_DEVICE static int first_col() { return warp() % D::WARPS_N * Config::WARP_N; }

  FASTGEMM_DEVICE void clear() {
#pragma unroll
    for (int i = 0; i < D::MMA_TILES_M; ++i)
#pragma unroll
      for (int j = 0; j < D::MMA_TILES_N; ++j)
#pragma unroll
        for (int e = 0; e < 8; ++e) accumulator[i][j][e] = 0.0f;
  }

  // Fragments of k-slice `slice` of the stage at `stage` into set slice % 2.
  FASTGEMM_DEVICE void load(u32 stage, int slice) {
#pragma unroll
    for (int i = 0; i < D::MMA_TILES_M; ++i)
      a[slice % 2][i].template load<Operand::A, typename D::ATile>(stage, first_row() + i * D::MMA,
                                                                   slice * D::MMA);
#pragma unroll
    for (int j = 0; j < D::MMA_TILES_N; ++j)
      b[slice % 2][j].template load<Operand::B, typename D::BTile>(
          stage + D::ATile::Layout::BYTES, first_col() + j * D::MMA, slice * D::MMA);
  }

  FASTGEMM_DEVICE void multiply(int slice) {
#pragma unroll
    for (int i = 0; i < D::MMA_TILES_M; ++i)
#pragma unroll
      for (int j = 0; j < D::MMA_TILES_N; ++j)
        Mma::multiply(accumulator[i][j], a[slice % 2][i], b[slice % 2][j]);
  }
};

}  // namespace fastgemm
