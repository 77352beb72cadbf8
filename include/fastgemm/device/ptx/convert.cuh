// Between float32 and an element's bits, to nearest even: PTX ISA, "cvt".
#pragma once

#include "fastgemm/device/types.cuh"

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/convert.cuh"
#else

namespace fastgemm::ptx {

FASTGEMM_DEVICE u16 from_float(Float16, float x) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
FASTGEMM_DEVICE u16 from_float(Bfloat16, float x) {
  u16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
FASTGEMM_DEVICE u32 from_float(Float32, float x) { return __float_as_uint(x); }

// Two at once, `low` in the lower half (sm_80).
FASTGEMM_DEVICE u32 from_float_x2(Float16, float low, float high) {
  u32 bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}
FASTGEMM_DEVICE u32 from_float_x2(Bfloat16, float low, float high) {
  u32 bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

FASTGEMM_DEVICE float to_float(Float16, u16 bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
FASTGEMM_DEVICE float to_float(Bfloat16, u16 bits) {
  return __uint_as_float(static_cast<u32>(bits) << 16);
}
FASTGEMM_DEVICE float to_float(Float32, u32 bits) { return __uint_as_float(bits); }

}  // namespace fastgemm::ptx

#endif
