// From float32 to 8 bits: nearest, ties to even, saturating. PTX ISA, "cvt"; what an architecture
// lacks is computed.
#pragma once

#include "fastgemm/device/ptx/math.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

// NaN becomes 0.
FASTGEMM_DEVICE u8 from_float(Int8, float x) {
#ifdef __CUDA_ARCH__
  u32 bits;
  asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return static_cast<u8>(bits);
#else
  const float clamped = x != x ? 0.0f : x < -128.0f ? -128.0f : x > 127.0f ? 127.0f : x;
  constexpr float WHOLE = 0x1.8p+23f;  // so large that adding it rounds to whole numbers
  const volatile float shifted = clamped + WHOLE;
  return static_cast<u8>(static_cast<int>(shifted - WHOLE));
#endif
}

// A sign, exponents from 2^(1 - BIAS) on and MANTISSA bits; LARGEST is the bits of the largest
// finite value, which infinities become too. NaN is all ones.
template <int MANTISSA, int BIAS, u32 LARGEST>
FASTGEMM_DEVICE u8 to_float8(float x) {
  constexpr int DROPPED = 23 - MANTISSA;
  constexpr u32 REBIAS = (127 - BIAS) << MANTISSA;
  const u32 bits = __float_as_uint(x), sign = bits >> 24 & 0x80u;
  u32 magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<u8>(sign | 0x7fu);
  if (magnitude < (128u - BIAS) << 23) {  // below the normal numbers: multiples of their last bit
    constexpr u32 SHIFT = (151u - BIAS - MANTISSA) << 23;  // a number whose last bit is that one
    magnitude = __float_as_uint(__uint_as_float(magnitude) + __uint_as_float(SHIFT)) - SHIFT;
  } else {
    magnitude += (1u << (DROPPED - 1)) - 1 + (magnitude >> DROPPED & 1u);
    magnitude = (magnitude >> DROPPED) - REBIAS;
  }
  return static_cast<u8>(sign | (magnitude < LARGEST ? magnitude : LARGEST));
}

FASTGEMM_DEVICE u8 from_float(Float8E4M3, float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  u16 pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, 0f00000000, %1;" : "=h"(pair) : "f"(x));
  return static_cast<u8>(pair);
#else
  return to_float8<3, 7, 0x7e>(x);
#endif
}

FASTGEMM_DEVICE u8 from_float(Float8E5M2, float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  u16 pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, 0f00000000, %1;" : "=h"(pair) : "f"(x));
  return static_cast<u8>(pair);
#else
  return to_float8<2, 15, 0x7b>(x);
#endif
}

}  // namespace fastgemm::ptx
