// What ptx/convert.cuh does, on the CPU: for tests of the arithmetic around it.
#pragma once

#include <cmath>

#include "fastgemm/device/ptx/math.cuh"

namespace fastgemm::ptx {

inline float to_float(Float16, u16 bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                          : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                          : std::ldexp(1024.0f + fraction, exponent - 25);
  return bits >> 15 ? -magnitude : magnitude;
}
inline float to_float(Bfloat16, u16 bits) { return __uint_as_float(static_cast<u32>(bits) << 16); }
inline float to_float(Float32, u32 bits) { return __uint_as_float(bits); }

inline u16 from_float(Bfloat16, float x) {
  const u32 bits = __float_as_uint(x);
  return static_cast<u16>(x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline u32 from_float(Float32, float x) { return __float_as_uint(x); }

}  // namespace fastgemm::ptx
