// The largest of many threads' values: PTX ISA, "redux.sync", "red" and "activemask".
#pragma once

#include "fastgemm/device/types.cuh"

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/atomic.cuh"
#else

namespace fastgemm::ptx {

// The largest of the lanes that are here together, given to one of them; the others get 0. Before
// sm_80 each lane gets its own.
FASTGEMM_DEVICE u32 largest_of_warp(u32 x) {
#if __CUDA_ARCH__ >= 800
  u32 mask, lanes_below, largest;
  asm volatile("activemask.b32 %0;" : "=r"(mask));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lanes_below));
  asm volatile("redux.sync.max.u32 %0, %1, %2;" : "=r"(largest) : "r"(x), "r"(mask));
  return (mask & lanes_below) == 0 ? largest : 0;
#else
  return x;
#endif
}

// *p = max(*p, x), of all threads of all kernels. Few get to the atomic: most see a larger value.
FASTGEMM_DEVICE void raise(u32* p, u32 x) {
  u32 seen;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(p) : "memory");
  if (x > seen)
    asm volatile("red.relaxed.gpu.global.max.u32 [%0], %1;" ::"l"(p), "r"(x) : "memory");
}

}  // namespace fastgemm::ptx

#endif
