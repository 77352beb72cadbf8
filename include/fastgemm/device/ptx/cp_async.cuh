// Asynchronous copies from global to shared memory (sm_80): PTX ISA, "cp.async".
#pragma once

#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

// Copies `valid_bytes` (0..BYTES) and fills the rest of BYTES with zeros; with 0 nothing is read.
// Source and destination are aligned to BYTES. 16-byte copies pass by L1 (.cg); narrower ones have
// only .ca.
template <int BYTES>
FASTGEMM_DEVICE void cp_async(u32 shared_address, const void* global, int valid_bytes) {
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async copies 4, 8 or 16 bytes");
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_address),
                 "l"(global), "r"(valid_bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address), "l"(global),
                 "n"(BYTES), "r"(valid_bytes)
                 : "memory");
}

// The same with all bytes valid: a third of the instructions, since the zero fill needs address
// arithmetic.
template <int BYTES>
FASTGEMM_DEVICE void cp_async(u32 shared_address, const void* global) {
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared_address),
                 "l"(global)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address), "l"(global),
                 "n"(BYTES)
                 : "memory");
}

// Closes this thread's current group of copies.
FASTGEMM_DEVICE void cp_async_commit_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most PENDING of this thread's youngest groups are still under way.
template <int PENDING>
FASTGEMM_DEVICE void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

}  // namespace fastgemm::ptx
