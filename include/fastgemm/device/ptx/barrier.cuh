// Barriers: PTX ISA, "Parallel Synchronization and Communication Instructions".
#pragma once

#include "fastgemm/device/types.cuh"

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/barrier.cuh"
#else

namespace fastgemm::ptx {

// All threads of the CTA have arrived, and see each other's shared-memory writes.
FASTGEMM_DEVICE void bar_sync() { asm volatile("bar.sync 0;" ::: "memory"); }

// The same among `threads` threads that name the barrier `id` (1..15).
FASTGEMM_DEVICE void bar_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Arrives at such a barrier for those who wait there, without waiting itself.
FASTGEMM_DEVICE void bar_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// bar_sync among the 32 threads of a warp.
FASTGEMM_DEVICE void bar_warp_sync() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }

// True for one lane of the warp, whose 32 threads wait for each other. The compiler knows that what
// follows is done once a warp, and computes it in uniform registers.
FASTGEMM_DEVICE bool elect_one() {
  u32 elected;
  asm volatile(
      "{\n"
      "  .reg .pred p;\n"
      "  elect.sync _|p, 0xffffffff;\n"
      "  selp.u32 %0, 1, 0, p;\n"
      "}"
      : "=r"(elected)::"memory");
  return elected != 0;
}

}  // namespace fastgemm::ptx

#endif
