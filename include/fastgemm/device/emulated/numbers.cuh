// float16 and bfloat16 on the host, bit for bit as cvt.rn has them, and the mark of poison.
#pragma once

#include "fastgemm/device/emulated/prelude.cuh"

namespace fastgemm::emulated {

// A sum that depends on shared memory which it must not have read is this NaN. Arithmetic and
// conversions hand it on; a store of it to global memory is an error. All other NaNs become the
// hardware's own.
constexpr u32 POISON_F32 = 0x7fdead01, NAN_F32 = 0x7fffffff;
constexpr u16 POISON_F16 = 0x7ead, POISON_BF16 = 0x7fed, NAN_16 = 0x7fff;

inline bool is_nan(u32 bits) { return (bits & 0x7fffffff) > 0x7f800000; }
inline bool is_poison(u32 bits) { return (bits & 0x7fffffff) == POISON_F32; }

inline u16 bfloat16_bits(float x) {
  const u32 bits = __float_as_uint(x);
  if (is_nan(bits)) return is_poison(bits) ? POISON_BF16 : NAN_16;
  return static_cast<u16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline u16 float16_bits(float x) {
  const u32 bits = __float_as_uint(x), magnitude = bits & 0x7fffffff;
  const u32 sign = bits >> 16 & 0x8000;
  if (is_nan(bits)) return is_poison(bits) ? POISON_F16 : NAN_16;
  if (magnitude >= 0x47800000) return static_cast<u16>(sign | 0x7c00);  // 65536 and more
  u32 half;
  if (magnitude < 0x38800000) {
    // Subnormal: the addition's own rounding leaves the bits at the lower end of 0.5's mantissa.
    half = __float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3f000000;
  } else {
    half = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  }
  return static_cast<u16>(sign | half);
}

inline float bfloat16_value(u16 bits) {
  return __uint_as_float(bits == POISON_BF16 ? POISON_F32 : static_cast<u32>(bits) << 16);
}

inline float float16_value(u16 bits) {
  if (bits == POISON_F16) return __uint_as_float(POISON_F32);
  // The exponent's bias differs by 112; the product makes subnormals right too.
  const u32 magnitude = static_cast<u32>(bits & 0x7fff) << 13;
  const u32 special = magnitude >= 0x0f800000 ? 0x7f800000 : 0;  // infinity and NaN
  const float value = __uint_as_float(magnitude) * __uint_as_float(0x77800000);
  return __uint_as_float(__float_as_uint(value) | special | static_cast<u32>(bits & 0x8000) << 16);
}

}  // namespace fastgemm::emulated
