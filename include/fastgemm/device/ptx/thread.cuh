// Where a thread stands in its CTA, and where the CTA stands in the grid.
#pragma once

#include "fastgemm/device/types.cuh"

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/thread.cuh"
#else

namespace fastgemm::ptx {

FASTGEMM_DEVICE int thread_index() { return static_cast<int>(threadIdx.x); }
FASTGEMM_DEVICE u32 block_index() { return blockIdx.x; }
FASTGEMM_DEVICE u32 grid_size() { return gridDim.x; }

}  // namespace fastgemm::ptx

#endif
