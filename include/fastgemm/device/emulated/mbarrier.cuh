// Host bodies of ptx/mbarrier.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE void mbarrier_init(u32 barrier, u32 arrivals) {
  emulated::machine().mbarrier_init(barrier, arrivals);
}
FASTGEMM_DEVICE void fence_mbarrier_init() { emulated::machine().fence_mbarrier_init(); }
FASTGEMM_DEVICE void mbarrier_arrive_expect_tx(u32 barrier, u32 bytes) {
  emulated::machine().mbarrier_arrive(barrier, bytes);
}
FASTGEMM_DEVICE void mbarrier_arrive(u32 barrier) {
  emulated::machine().mbarrier_arrive(barrier, 0);
}
FASTGEMM_DEVICE void mbarrier_arrive_cluster(u32 barrier, u32 rank) {
  emulated::machine().mbarrier_arrive(emulated::in_cta(barrier, rank), 0);
}
FASTGEMM_DEVICE void mbarrier_wait(u32 barrier, u32 parity) {
  emulated::machine().mbarrier_wait(barrier, parity);
}

}  // namespace fastgemm::ptx
