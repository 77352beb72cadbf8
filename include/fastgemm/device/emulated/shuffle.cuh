// Host bodies of ptx/shuffle.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE float shfl_bfly(float value, int mask) {
  const int lane = emulated::running->thread_index % WARP_THREADS;
  return __uint_as_float(emulated::machine().shuffle(__float_as_uint(value), lane ^ mask));
}
FASTGEMM_DEVICE u32 warp_uniform(u32 value) { return emulated::machine().shuffle(value, 0); }

}  // namespace fastgemm::ptx
