// Host bodies of ptx/atomic.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE u32 largest_of_warp(u32 x) { return x; }

FASTGEMM_DEVICE void raise(u32* p, u32 x) { emulated::machine().raise_global(p, x); }

}  // namespace fastgemm::ptx
