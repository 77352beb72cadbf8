// What ptx/atomic.cuh does, on the CPU: for tests of the arithmetic around it.
#pragma once

#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE u32 largest_of_warp(u32 x) { return x; }

FASTGEMM_DEVICE void raise(u32* p, u32 x) {
  u32 seen = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (seen < x &&
         !__atomic_compare_exchange_n(p, &seen, x, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

}  // namespace fastgemm::ptx
