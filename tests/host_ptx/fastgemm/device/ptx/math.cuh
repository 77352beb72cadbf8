// What ptx/math.cuh does, on the CPU: for tests of the arithmetic around it.
#pragma once

#include <cmath>
#include <cstring>

#include "fastgemm/device/types.cuh"

inline float __uint_as_float(unsigned bits) {
  float x;
  return std::memcpy(&x, &bits, 4), x;
}
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  return std::memcpy(&bits, &x, 4), bits;
}

namespace fastgemm::ptx {

inline float ex2(float x) { return std::exp2(x); }
inline float rcp(float x) { return 1.0f / x; }
inline float absolute(float x) { return std::fabs(x); }
inline float copy_sign(float magnitude, float sign) { return std::copysign(magnitude, sign); }
inline float exponential(float x) { return std::exp(x); }
inline float logarithm(float x) { return std::log(x); }
inline float square_root(float x) { return std::sqrt(x); }

}  // namespace fastgemm::ptx
