// The swizzle of TMA and WGMMA, on addresses of shared memory: what the hardware does.
#pragma once

#include "fastgemm/device/emulated/prelude.cuh"

namespace fastgemm::emulated {

// The number of the 16-byte chunk within `span` bytes (128, 64, 32; 16 is no swizzle) is XORed with
// address bits from 7 on: in rows of that many bytes.
inline u32 swizzled(u32 address, int span) {
  const u32 chunks = static_cast<u32>(span) / 16;
  return address ^ (address >> 7 & (chunks - 1)) << 4;
}

}  // namespace fastgemm::emulated
