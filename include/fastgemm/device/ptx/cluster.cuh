// Clusters of CTAs that reach each other's shared memory, and register reallocation (sm_90).
#pragma once

#include "fastgemm/device/types.cuh"

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/cluster.cuh"
#else

namespace fastgemm::ptx {

FASTGEMM_DEVICE u32 cluster_cta_rank() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// All threads of all CTAs of the cluster have arrived.
FASTGEMM_DEVICE void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.relaxed.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}

// Gives registers of this warpgroup's threads back, or takes more, up to COUNT a thread
// ("setmaxnreg").
template <int COUNT>
FASTGEMM_DEVICE void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT>
FASTGEMM_DEVICE void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

}  // namespace fastgemm::ptx

#endif
