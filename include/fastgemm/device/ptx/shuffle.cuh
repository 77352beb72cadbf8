// Exchange between the lanes of a warp: PTX ISA, "shfl.sync".
#pragma once

#include "fastgemm/device/types.cuh"

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/shuffle.cuh"
#else

namespace fastgemm::ptx {

// The value of lane (own lane ^ mask). All 32 lanes take part.
FASTGEMM_DEVICE float shfl_bfly(float value, int mask) {
  float other;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
               : "=f"(other)
               : "f"(value), "r"(mask));
  return other;
}

}  // namespace fastgemm::ptx

#endif
