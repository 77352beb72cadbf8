// float32 to the two kinds of float8, computed: for architectures that have no instruction for it.
#pragma once

#include "fastgemm/device/types.cuh"

namespace fastgemm {

// A sign, exponents from 2^(1 - BIAS) on and MANTISSA bits, to nearest even. LARGEST is the bits of
// the largest finite value, which all that is larger becomes. NaN is all ones.
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
  return static_cast<u8>(sign | min_of(magnitude, LARGEST));
}

FASTGEMM_DEVICE u8 to_float8e4m3(float x) { return to_float8<3, 7, 0x7e>(x); }
FASTGEMM_DEVICE u8 to_float8e5m2(float x) { return to_float8<2, 15, 0x7b>(x); }

}  // namespace fastgemm
