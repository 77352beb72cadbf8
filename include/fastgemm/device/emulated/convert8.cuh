// Host bodies of ptx/convert8.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/float8.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE u8 from_float(Int8, float x) {
  emulated::machine().refuse_poison(x);
  const float clamped = x != x ? 0.0f : x < -128.0f ? -128.0f : x > 127.0f ? 127.0f : x;
  return static_cast<u8>(static_cast<int>(__builtin_rintf(clamped)));
}
FASTGEMM_DEVICE u8 from_float(Float8E4M3, float x) {
  emulated::machine().refuse_poison(x);
  return to_float8e4m3(x);
}
FASTGEMM_DEVICE u8 from_float(Float8E5M2, float x) {
  emulated::machine().refuse_poison(x);
  return to_float8e5m2(x);
}

}  // namespace fastgemm::ptx
