// Approximations of the special function unit, and the slower functions of the compiler: PTX ISA,
// "ex2" and "rcp".
#pragma once

#include "fastgemm/device/types.cuh"

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/math.cuh"
#else

namespace fastgemm::ptx {

// 2^x within 2 units in the last place; 2^-inf is 0.
FASTGEMM_DEVICE float ex2(float x) {
  float y;
  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 1 / x within 1 unit in the last place; 1 / inf is 0.
FASTGEMM_DEVICE float rcp(float x) {
  float y;
  asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

FASTGEMM_DEVICE float absolute(float x) {
  return __uint_as_float(__float_as_uint(x) & 0x7fffffffu);
}

FASTGEMM_DEVICE float copy_sign(float magnitude, float sign) {
  return __uint_as_float((__float_as_uint(magnitude) & 0x7fffffffu) |
                         (__float_as_uint(sign) & 0x80000000u));
}

// Built into the compiler: no header declares them to NVRTC.
FASTGEMM_DEVICE float exponential(float x) { return expf(x); }
FASTGEMM_DEVICE float logarithm(float x) { return logf(x); }
FASTGEMM_DEVICE float square_root(float x) { return sqrtf(x); }

}  // namespace fastgemm::ptx

#endif
