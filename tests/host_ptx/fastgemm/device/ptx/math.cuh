// What ptx/math.cuh does, on the CPU, and the intrinsics of the compiler.
#pragma once

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

#include "fastgemm/device/emulated/math.cuh"
