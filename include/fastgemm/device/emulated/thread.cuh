// Host bodies of ptx/thread.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE int thread_index() { return emulated::running->thread_index; }
FASTGEMM_DEVICE u32 block_index() { return emulated::running->block_index; }
FASTGEMM_DEVICE u32 grid_size() { return emulated::running->grid_size; }

}  // namespace fastgemm::ptx
