// The Tensor Memory Accelerator (sm_90): box copies by tensor map. PTX ISA, "cp.async.bulk.tensor".
#pragma once

#include "fastgemm/device/types.cuh"

namespace fastgemm {

// What the host encodes with cuTensorMapEncodeTiled: pointer, extents, strides, box, swizzle.
struct alignas(64) TensorMap {
  u64 opaque[16];
};

}  // namespace fastgemm

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/tma.cuh"
#else

namespace fastgemm::ptx {

FASTGEMM_DEVICE void prefetch_tensormap(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Brings the box at (x, y, z, w), x the contiguous index, into shared memory; what lies outside the
// tensor is zero. Its bytes count at `barrier`.
FASTGEMM_DEVICE void tma_load_4d(u32 shared, const TensorMap& map, u32 barrier, int x, int y, int z,
                                 int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared),
      "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

// The same into every CTA of the cluster whose bit is set in `ctas`: to the same place, counted at
// the same place.
FASTGEMM_DEVICE void tma_load_4d_multicast(u32 shared, const TensorMap& map, u32 barrier, int x,
                                           int y, int z, int w, u16 ctas) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%4, %5, %6, %7}], [%2], %3;" ::"r"(shared),
      "l"(&map), "r"(barrier), "h"(ctas), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

// Brings the box from memory into L2 only.
FASTGEMM_DEVICE void tma_prefetch_4d(const TensorMap& map, int x, int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %3, %4}];" ::"l"(&map), "r"(x),
      "r"(y), "r"(z), "r"(w)
      : "memory");
}

// Writes the box from shared memory to (x, y, z, w); what lies outside the tensor is not written.
FASTGEMM_DEVICE void tma_store_4d(const TensorMap& map, u32 shared, int x, int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::
          "l"(&map),
      "r"(shared), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

FASTGEMM_DEVICE void bulk_commit_group() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Until at most PENDING of this thread's youngest groups still read shared memory.
template <int PENDING>
FASTGEMM_DEVICE void bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

// Orders this thread's shared-memory writes before later reads of the copy engine and the Tensor
// Cores.
FASTGEMM_DEVICE void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace fastgemm::ptx

#endif
