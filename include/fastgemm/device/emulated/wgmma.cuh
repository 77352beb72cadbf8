// Host bodies of ptx/wgmma.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE void wgmma_fence() { emulated::machine().wgmma_fence(); }
FASTGEMM_DEVICE void wgmma_commit_group() { emulated::machine().wgmma_commit_group(); }
template <int PENDING>
FASTGEMM_DEVICE void wgmma_wait_group() {
  emulated::machine().wgmma_wait_group(PENDING);
}

template <int N>
struct Wgmma {
  static_assert(N % 16 == 0 && N >= 16 && N <= 256, "n of a wgmma that fastgemm writes");
  template <bool A_MN, bool B_MN>
  FASTGEMM_DEVICE static void multiply(Float16, float (&d)[N / 16][8], u64 a, u64 b,
                                       int accumulate) {
    emulated::machine().wgmma({N, false, A_MN, B_MN, accumulate != 0, a, b, d[0]});
  }
  template <bool A_MN, bool B_MN>
  FASTGEMM_DEVICE static void multiply(Bfloat16, float (&d)[N / 16][8], u64 a, u64 b,
                                       int accumulate) {
    emulated::machine().wgmma({N, true, A_MN, B_MN, accumulate != 0, a, b, d[0]});
  }
};

}  // namespace fastgemm::ptx
