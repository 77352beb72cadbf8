// Host bodies of ptx/cluster.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE u32 cluster_cta_rank() { return emulated::running->cluster_rank; }
FASTGEMM_DEVICE void cluster_arrive() { emulated::machine().cluster_arrive(); }
FASTGEMM_DEVICE void cluster_wait() { emulated::machine().cluster_wait(); }
FASTGEMM_DEVICE void st_async_v4(u32 shared, u32 barrier, u32 rank, const float (&x)[4]) {
  emulated::machine().st_async(emulated::in_cta(shared, rank), emulated::in_cta(barrier, rank), x,
                               sizeof x);
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
