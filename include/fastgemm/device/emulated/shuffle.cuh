// Host bodies of ptx/shuffle.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE u32 shfl_bfly(u32 value, int mask) {
  const int lane = emulated::running->thread_index % WARP_THREADS;
  return emulated::machine().shuffle(value, lane ^ mask);
}
FASTGEMM_DEVICE float shfl_bfly(float value, int mask) {
  return __uint_as_float(shfl_bfly(__float_as_uint(value), mask));
}
FASTGEMM_DEVICE u32 warp_uniform(u32 value) { return emulated::machine().shuffle(value, 0); }

}  // namespace fastgemm::ptx
