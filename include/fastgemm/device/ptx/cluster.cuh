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

// The barrier of all threads of all CTAs of the cluster, in two steps: work can stand between them.
FASTGEMM_DEVICE void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
FASTGEMM_DEVICE void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Sends 16 bytes to `shared` in CTA `rank` of the cluster, which count at its `barrier` when they
// have arrived: PTX ISA, "st.async".
FASTGEMM_DEVICE void st_async_v4(u32 shared, u32 barrier, u32 rank, const float (&x)[4]) {
  asm volatile(
      "{\n"
      ".reg .b32 remote, remote_barrier;\n"
      "mapa.shared::cluster.u32 remote, %0, %2;\n"
      "mapa.shared::cluster.u32 remote_barrier, %1, %2;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [remote], {%3, %4, %5, %6}, "
      "[remote_barrier];\n"
      "}" ::"r"(shared),
      "r"(barrier), "r"(rank), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3])
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
