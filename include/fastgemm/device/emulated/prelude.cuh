// What CUDA's keywords and built-in functions mean to a host compiler. Comes first in an emulated
// kernel's source.
#pragma once

#define FASTGEMM_EMULATE 1

#define __device__
#define __global__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

// Kernels have one array of shared memory, `extern __shared__ ... shared_memory[]` in namespace
// fastgemm. Nobody defines it: as a weak symbol it lies at address 0, and cvta_to_shared() turns
// what is computed from that into a place in the window of shared memory.
#define __shared__
asm(".weak _ZN8fastgemm13shared_memoryE");

inline float __uint_as_float(unsigned bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
inline unsigned __float_as_uint(float value) {
  unsigned bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

namespace fastgemm::emulated {
// Those of types.cuh, which the library's own sources cannot include.
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;
}  // namespace fastgemm::emulated
