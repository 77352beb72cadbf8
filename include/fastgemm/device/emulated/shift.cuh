// Host bodies of ptx/shift.cuh.
#pragma once

#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE u32 shf_r(u32 low, u32 high, u32 bits) {
  return static_cast<u32>((u64(high) << 32 | low) >> (bits % 32));
}

}  // namespace fastgemm::ptx
