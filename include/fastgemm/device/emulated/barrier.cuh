// Host bodies of ptx/barrier.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE void bar_sync() { emulated::machine().bar_sync(0, 0); }
FASTGEMM_DEVICE void bar_sync(int id, int threads) { emulated::machine().bar_sync(id, threads); }
FASTGEMM_DEVICE void bar_arrive(int id, int threads) {
  emulated::machine().bar_arrive(id, threads);
}
FASTGEMM_DEVICE void bar_warp_sync() { emulated::machine().bar_warp_sync(); }
FASTGEMM_DEVICE bool elect_one() {
  bar_warp_sync();
  return emulated::running->thread_index % WARP_THREADS == 0;
}

}  // namespace fastgemm::ptx
