// Integers, element types and enums of the device code. Includes nothing: compiles stay short.
#pragma once

#define FASTGEMM_DEVICE __device__ __forceinline__

namespace fastgemm {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

// Element types, as tags: device code moves them as raw bits and converts in ptx/convert.cuh.
struct Float16 {
  using Bits = u16;
};
struct Bfloat16 {
  using Bits = u16;
};
struct Float32 {
  using Bits = u32;
};
// Of D only.
struct Int8 {
  using Bits = u8;
};
struct Float8E4M3 {
  using Bits = u8;
};
struct Float8E5M2 {
  using Bits = u8;
};

// Which index of an operand is contiguous, in global memory and so in its shared-memory tile.
enum class Major { K, MN };

// 16 bytes: the widest access of one thread, and the unit that shared memory is swizzled in.
struct alignas(16) Chunk {
  u32 word[4];
};
constexpr int CHUNK_BYTES = 16;
constexpr int CHUNK_ELEMENTS = 8;  // of 16 bits

constexpr int WARP_THREADS = 32;

template <class T>
FASTGEMM_DEVICE constexpr T min_of(T a, T b) {
  return a < b ? a : b;
}
template <class T>
FASTGEMM_DEVICE constexpr T max_of(T a, T b) {
  return a < b ? b : a;
}

}  // namespace fastgemm
