// Exchange between the lanes of a warp: PTX ISA, "shfl.sync".
#pragma once

#include "fastgemm/device/types.cuh"

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/shuffle.cuh"
#else

namespace fastgemm::ptx {

// The value of lane (own lane ^ mask). All 32 lanes take part.
FASTGEMM_DEVICE u32 shfl_bfly(u32 value, int mask) {
  u32 other;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;"
               : "=r"(other)
               : "r"(value), "r"(mask));
  return other;
}
FASTGEMM_DEVICE float shfl_bfly(float value, int mask) {
  return __uint_as_float(shfl_bfly(__float_as_uint(value), mask));
}

// The value that all lanes have, as the compiler cannot know: what comes of it is computed once a
// warp, in uniform registers, from which wgmma takes its descriptors. All 32 lanes take part.
FASTGEMM_DEVICE u32 warp_uniform(u32 value) {
  u32 first;
  asm volatile("shfl.sync.idx.b32 %0, %1, 0, 0x1f, 0xffffffff;" : "=r"(first) : "r"(value));
  return first;
}

}  // namespace fastgemm::ptx

#endif
