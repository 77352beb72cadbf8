// Shared-memory loads and stores by 32-bit shared-window address: PTX ISA, "ld" and "st".
#pragma once

#include "fastgemm/device/types.cuh"

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/shared.cuh"
#else

namespace fastgemm::ptx {

// The 32-bit address that shared-memory instructions take, of a generic pointer into shared memory.
FASTGEMM_DEVICE u32 cvta_to_shared(const void* pointer) {
  return static_cast<u32>(__cvta_generic_to_shared(pointer));
}

FASTGEMM_DEVICE u16 ld_shared_u16(u32 address) {
  u16 value;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value) : "r"(address) : "memory");
  return value;
}

FASTGEMM_DEVICE Chunk ld_shared_v4(u32 address) {
  Chunk c;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(c.word[0]), "=r"(c.word[1]), "=r"(c.word[2]), "=r"(c.word[3])
               : "r"(address)
               : "memory");
  return c;
}

FASTGEMM_DEVICE void st_shared_v4(u32 address, const Chunk& c) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(c.word[0]),
               "r"(c.word[1]), "r"(c.word[2]), "r"(c.word[3])
               : "memory");
}

FASTGEMM_DEVICE float ld_shared_f32(u32 address) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}

FASTGEMM_DEVICE void st_shared_f32(u32 address, float x) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(x) : "memory");
}

FASTGEMM_DEVICE void st_shared_v2_f32(u32 address, float x, float y) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(x), "f"(y) : "memory");
}

}  // namespace fastgemm::ptx

#endif
