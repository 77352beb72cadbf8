// Shifts across two registers: PTX ISA, "shf".
#pragma once

#include "fastgemm/device/types.cuh"

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/shift.cuh"
#else

namespace fastgemm::ptx {

// The lower word of (high, low) shifted right by `bits` < 32.
FASTGEMM_DEVICE u32 shf_r(u32 low, u32 high, u32 bits) {
  u32 word;
  asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(low), "r"(high), "r"(bits));
  return word;
}

}  // namespace fastgemm::ptx

#endif
