// Asynchronous copies from global to shared memory (sm_80): PTX ISA, "cp.async".
#pragma once

#include "fastgemm/device/types.cuh"

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/cp_async.cuh"
#else

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

// All of BYTES where index < limit, else zeros: a predicate of the instruction, where a count of
// bytes needs address arithmetic. The comparison stands in the assembly lest the compiler keep all
// predicates of a loop at once, in general registers.
template <int BYTES>
FASTGEMM_DEVICE void cp_async_below(u32 shared_address, const void* global, int index, int limit) {
  if constexpr (BYTES == 16)
    asm volatile(
        "{\n.reg .pred ignore;\nsetp.ge.s32 ignore, %2, %3;\n"
        "cp.async.cg.shared.global.L2::128B [%0], [%1], 16, ignore;\n}" ::"r"(shared_address),
        "l"(global), "r"(index), "r"(limit)
        : "memory");
  else
    asm volatile(
        "{\n.reg .pred ignore;\nsetp.ge.s32 ignore, %3, %4;\n"
        "cp.async.ca.shared.global [%0], [%1], %2, ignore;\n}" ::"r"(shared_address),
        "l"(global), "n"(BYTES), "r"(index), "r"(limit)
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

#endif
