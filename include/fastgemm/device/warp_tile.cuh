// A warp's part of the block tile: its accumulators and fragments, and the product of one k-slice.
#pragma once

#include "fastgemm/device/config.cuh"
#include "fastgemm/device/mma_sm70.cuh"
#include "fastgemm/device/mma_sm80.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/shifted_rows.cuh"

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
  // Two sets: while the Tensor Cores multiply a k-slice from one, the next slice is loaded into the
  // other.
  typename Mma::Fragment a[2][D::MMA_TILES_M];
  typename Mma::Fragment b[2][D::MMA_TILES_N];

  ShiftedRows<typename D::ATile> a_rows;
  ShiftedRows<typename D::BTile> b_rows;

  FASTGEMM_DEVICE WarpTile(const ShiftedRows<typename D::ATile>& rows_of_a,
                           const ShiftedRows<typename D::BTile>& rows_of_b)
      : a_rows(rows_of_a), b_rows(rows_of_b) {}

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

  // Fragments of k-slice `slice` of the stage at `stage`, into a set. The set is a constant
  // wherever this is called: registers cannot be indexed.
  FASTGEMM_DEVICE void load(u32 stage, int slice, int set) {
#pragma unroll
    for (int i = 0; i < D::MMA_TILES_M; ++i)
      a[set][i].template load<Operand::A>(stage, first_row() + i * D::MMA, slice * D::MMA, a_rows);
#pragma unroll
    for (int j = 0; j < D::MMA_TILES_N; ++j)
      b[set][j].template load<Operand::B>(stage + D::ATile::Layout::BYTES, first_col() + j * D::MMA,
                                          slice * D::MMA, b_rows);
  }

  FASTGEMM_DEVICE void multiply(int set) {
#pragma unroll
    for (int i = 0; i < D::MMA_TILES_M; ++i)
#pragma unroll
      for (int j = 0; j < D::MMA_TILES_N; ++j)
        Mma::multiply(accumulator[i][j], a[set][i], b[set][j]);
  }
};

}  // namespace fastgemm
