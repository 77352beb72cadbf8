// The mma tile of sm_80 and, in steps of half the depth, of sm_75: a warp's 16 x 16 x 16 product.
#pragma once

#include "fastgemm/device/config.cuh"
#include "fastgemm/device/ptx/ldmatrix.cuh"
#include "fastgemm/device/ptx/mma.cuh"
#include "fastgemm/device/ptx/shared.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/shifted_rows.cuh"

namespace fastgemm {

enum class Operand { A, B };

// A 16 (outer) x 16 (k) fragment: four 8x8 matrices, one ldmatrix where rows are aligned. The mma
// instructions want them in the order
//
//        A   k 0-7  k 8-15          B   k 0-7  k 8-15
//   m 0-7     r[0]   r[2]      n 0-7     r[0]   r[1]
//   m 8-15    r[1]   r[3]      n 8-15    r[2]   r[3]
//
// with element (outer l / 4, k 2 * (l % 4)) and its k-neighbour in lane l. A tile with k contiguous
// has them as it lies; one with m or n contiguous holds the transposes, and ldmatrix turns them on
// the way.
struct Fragment16 {
  u32 r[4];

  template <Operand OPERAND, class Tile>
  FASTGEMM_DEVICE void load(u32 shared_tile, int outer, int k, const ShiftedRows<Tile>& rows) {
    if constexpr (Tile::SHIFTED)
      gather<OPERAND>(shared_tile, outer, k, rows);
    else
      ldmatrix<OPERAND, Tile>(shared_tile, outer, k);
  }

 private:
  template <Operand OPERAND, class Tile>
  FASTGEMM_DEVICE void ldmatrix(u32 shared_tile, int outer, int k) {
    const int lane = ptx::thread_index() % WARP_THREADS;
    const int low = lane / 8 % 2, high = lane / 16;  // this lane's matrix is number low + 2 * high
    const int outer_half = 8 * (OPERAND == Operand::A ? low : high);
    const int k_half = 8 * (OPERAND == Operand::A ? high : low);
    using Layout = typename Tile::Layout;
    if constexpr (Tile::MAJOR == Major::K)
      ptx::ldmatrix_x4(r, shared_tile + Layout::offset(outer + outer_half + lane % 8,
                                                       (k + k_half) / CHUNK_ELEMENTS));
    else
      ptx::ldmatrix_x4_trans(
          r, shared_tile +
                 Layout::offset(k + k_half + lane % 8, (outer + outer_half) / CHUNK_ELEMENTS));
  }

  // The same of rows that begin anywhere, element by element.
  template <Operand OPERAND, class Tile>
  FASTGEMM_DEVICE void gather(u32 shared_tile, int outer, int k, const ShiftedRows<Tile>& rows) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int outer_half = 8 * (OPERAND == Operand::A ? i % 2 : i / 2);
      const int k_half = 8 * (OPERAND == Operand::A ? i / 2 : i % 2);
      const auto element = [&](int e) -> u32 {
        return ptx::ld_shared_u16(shared_tile + rows.place(outer + outer_half, k + k_half, e));
      };
      r[i] = element(0) | element(1) << 16;
    }
  }
};

// Where a lane's eight accumulators lie in the 16 x 16 tile: four pairs of neighbouring columns.
struct M16n8Accumulators {
  FASTGEMM_DEVICE static int row(int lane, int pair) { return lane / 4 + 8 * (pair % 2); }
  FASTGEMM_DEVICE static int col(int lane, int pair) { return 2 * (lane % 4) + 8 * (pair / 2); }
};

template <class Input>
struct MmaSm80 : M16n8Accumulators {
  using Fragment = Fragment16;
  FASTGEMM_DEVICE static void multiply(float (&d)[8], const Fragment& a, const Fragment& b) {
    ptx::mma_m16n8k16(Input{}, d, a.r, b.r[0], b.r[1]);
    ptx::mma_m16n8k16(Input{}, d + 4, a.r, b.r[2], b.r[3]);
  }
};

template <class Input>
struct MmaSm75 : M16n8Accumulators {
  using Fragment = Fragment16;
  FASTGEMM_DEVICE static void multiply(float (&d)[8], const Fragment& a, const Fragment& b) {
    ptx::mma_m16n8k8(Input{}, d, a.r[0], a.r[1], b.r[0]);
    ptx::mma_m16n8k8(Input{}, d + 4, a.r[0], a.r[1], b.r[2]);
    ptx::mma_m16n8k8(Input{}, d, a.r[2], a.r[3], b.r[1]);
    ptx::mma_m16n8k8(Input{}, d + 4, a.r[2], a.r[3], b.r[3]);
  }
};

}  // namespace fastgemm
