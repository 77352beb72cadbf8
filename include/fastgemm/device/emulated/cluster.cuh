// Host bodies of ptx/cluster.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE u32 cluster_cta_rank() { return emulated::running->cluster_rank; }
FASTGEMM_DEVICE void cluster_sync() {
  emulated::machine().cluster_arrive();
  emulated::machine().cluster_wait();
}
template <int COUNT>
FASTGEMM_DEVICE void setmaxnreg_dec() {
  emulated::machine().setmaxnreg(COUNT, false);
}
template <int COUNT>
FASTGEMM_DEVICE void setmaxnreg_inc() {
  emulated::machine().setmaxnreg(COUNT, true);
}

}  // namespace fastgemm::ptx
