// From float32 to 8 bits: nearest, ties to even, saturating. PTX ISA, "cvt".
#pragma once

#include "fastgemm/device/float8.cuh"
#include "fastgemm/device/types.cuh"

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/convert8.cuh"
#else

namespace fastgemm::ptx {

// NaN becomes 0.
FASTGEMM_DEVICE u8 from_float(Int8, float x) {
  u32 bits;
  asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return static_cast<u8>(bits);
}

FASTGEMM_DEVICE u8 from_float(Float8E4M3, float x) {
#if __CUDA_ARCH__ >= 890
  u16 pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, 0f00000000, %1;" : "=h"(pair) : "f"(x));
  return static_cast<u8>(pair);
#else
  return to_float8e4m3(x);
#endif
}

FASTGEMM_DEVICE u8 from_float(Float8E5M2, float x) {
#if __CUDA_ARCH__ >= 890
  u16 pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, 0f00000000, %1;" : "=h"(pair) : "f"(x));
  return static_cast<u8>(pair);
#else
  return to_float8e5m2(x);
#endif
}

}  // namespace fastgemm::ptx

#endif
