// The mma tile of sm_70 (Volta): a warp's 16 x 16 x 16 product out of m8n8k4, without ldmatrix.
#pragma once

#include "fastgemm/device/config.cuh"
#include "fastgemm/device/mma_sm80.cuh"
#include "fastgemm/device/ptx/mma.cuh"
#include "fastgemm/device/ptx/shared.cuh"
#include "fastgemm/device/ptx/thread.cuh"

namespace fastgemm {

// m8n8k4 computes four independent 8x8 products, one for each quad pair q (lanes 4q..4q+3 and
// 4q+16..4q+19). We give them the quadrants of the 16 x 16 tile: q = 0: top left, 1: bottom left,
// 2: top right, 3: bottom right. A lane holds one row of A's (one column of B's) half of its
// quadrant, all 16 of k.
struct QuadPairFragment {
  u32 r[8];

  template <Operand OPERAND, class Tile>
  FASTGEMM_DEVICE void load(u32 shared_tile, int outer, int k, const ShiftedRows<Tile>&) {
    const int lane = ptx::thread_index() % WARP_THREADS;
    const int half = OPERAND == Operand::A ? lane / 4 % 2 : lane / 8 % 2;
    outer += 8 * half + 4 * (lane / 16) + lane % 4;
    using Layout = typename Tile::Layout;
    if constexpr (Tile::MAJOR == Major::K) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Chunk c =
            ptx::ld_shared_v4(shared_tile + Layout::offset(outer, k / CHUNK_ELEMENTS + i));
#pragma unroll
        for (int j = 0; j < 4; ++j) r[4 * i + j] = c.word[j];
      }
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const u32 lo = ptx::ld_shared_u16(element<Layout>(shared_tile, k + 2 * i, outer));
        const u32 hi = ptx::ld_shared_u16(element<Layout>(shared_tile, k + 2 * i + 1, outer));
        r[i] = lo | hi << 16;
      }
    }
  }

 private:
  template <class Layout>
  FASTGEMM_DEVICE static u32 element(u32 shared_tile, int row, int col) {
    return shared_tile + Layout::offset(row, col / CHUNK_ELEMENTS) + col % CHUNK_ELEMENTS * 2;
  }
};

template <class Input>
struct MmaSm70 {
  using Fragment = QuadPairFragment;
  FASTGEMM_DEVICE static void multiply(float (&d)[8], const Fragment& a, const Fragment& b) {
#pragma unroll
    for (int k4 = 0; k4 < 4; ++k4) ptx::mma_m8n8k4(Input{}, d, a.r + 2 * k4, b.r + 2 * k4);
  }
  FASTGEMM_DEVICE static int row(int lane, int pair) {
    return lane % 2 + 2 * (pair % 2) + 4 * (lane / 16) + 8 * (lane / 4 % 2);
  }
  FASTGEMM_DEVICE static int col(int lane, int pair) {
    return lane % 4 / 2 * 2 + 4 * (pair / 2) + 8 * (lane / 8 % 2);
  }
};

}  // namespace fastgemm
