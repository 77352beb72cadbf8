// Host bodies of ptx/convert.cuh.
#pragma once

#include "fastgemm/device/emulated/numbers.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE u16 from_float(Float16, float x) { return emulated::float16_bits(x); }
FASTGEMM_DEVICE u16 from_float(Bfloat16, float x) { return emulated::bfloat16_bits(x); }
FASTGEMM_DEVICE u32 from_float(Float32, float x) { return __float_as_uint(x); }
template <class Element>
FASTGEMM_DEVICE u32 from_float_x2(Element, float low, float high) {
  return from_float(Element{}, low) | static_cast<u32>(from_float(Element{}, high)) << 16;
}
FASTGEMM_DEVICE float to_float(Float16, u16 bits) { return emulated::float16_value(bits); }
FASTGEMM_DEVICE float to_float(Bfloat16, u16 bits) { return emulated::bfloat16_value(bits); }
FASTGEMM_DEVICE float to_float(Float32, u32 bits) { return __uint_as_float(bits); }

}  // namespace fastgemm::ptx
