// Global-memory loads and stores: PTX ISA, "ld" and "st".
#pragma once

#include "fastgemm/device/types.cuh"

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/global.cuh"
#else

namespace fastgemm::ptx {

FASTGEMM_DEVICE u16 ld_global(const u16* p) {
  u16 value;
  asm volatile("ld.global.u16 %0, [%1];" : "=h"(value) : "l"(p) : "memory");
  return value;
}
FASTGEMM_DEVICE u32 ld_global(const u32* p) {
  u32 value;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}

// A load of memory that the kernel does not write, which the compiler may merge with its like.
template <class T>
FASTGEMM_DEVICE T ld_global_mergeable(const T* p) {
  return *p;
}

// WORDS 32-bit words at once, aligned to their size.
template <int WORDS>
FASTGEMM_DEVICE void ld_global_words(u32* words, const void* p) {
  static_assert(WORDS == 1 || WORDS == 2 || WORDS == 4, "4, 8 or 16 bytes");
  if constexpr (WORDS == 4)
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "l"(p)
                 : "memory");
  else if constexpr (WORDS == 2)
    asm volatile("ld.global.v2.u32 {%0, %1}, [%2];"
                 : "=r"(words[0]), "=r"(words[1])
                 : "l"(p)
                 : "memory");
  else
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(words[0]) : "l"(p) : "memory");
}

// Four words that nobody reads again: not kept in L1 (PTX ISA 7.4).
FASTGEMM_DEVICE void ld_global_once(u32* words, const void* p) {
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "l"(p)
               : "memory");
}

// Brings the line at `p` into L2, and nowhere else.
FASTGEMM_DEVICE void prefetch_l2(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p) : "memory");
}

FASTGEMM_DEVICE void st_global(u8* p, u8 value) {
  asm volatile("st.global.u8 [%0], %1;" ::"l"(p), "r"(static_cast<u32>(value)) : "memory");
}
FASTGEMM_DEVICE void st_global(u16* p, u16 value) {
  asm volatile("st.global.u16 [%0], %1;" ::"l"(p), "h"(value) : "memory");
}
FASTGEMM_DEVICE void st_global(u32* p, u32 value) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}

template <int WORDS>
FASTGEMM_DEVICE void st_global_words(void* p, const u32* words) {
  static_assert(WORDS == 1 || WORDS == 2 || WORDS == 4, "4, 8 or 16 bytes");
  if constexpr (WORDS == 4)
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(words[0]), "r"(words[1]),
                 "r"(words[2]), "r"(words[3])
                 : "memory");
  else if constexpr (WORDS == 2)
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(words[0]), "r"(words[1])
                 : "memory");
  else
    asm volatile("st.global.u32 [%0], %1;" ::"l"(p), "r"(words[0]) : "memory");
}

// Two words where `exists`, by a predicate: of a branch, the compiler would compute the address
// anew behind each.
FASTGEMM_DEVICE void st_global_pair_if(bool exists, void* p, u32 first, u32 second) {
  asm volatile(
      "{.reg .pred exists; setp.ne.u32 exists, %0, 0;"
      " @exists st.global.v2.u32 [%1], {%2, %3};}" ::"r"(u32(exists)),
      "l"(p), "r"(first), "r"(second)
      : "memory");
}

}  // namespace fastgemm::ptx

#endif
