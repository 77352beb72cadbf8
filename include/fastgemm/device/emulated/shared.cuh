// Host bodies of ptx/shared.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

// Arrays of shared memory count from 0 (prelude.cuh).
FASTGEMM_DEVICE u32 cvta_to_shared(const void* pointer) {
  return emulated::running->shared_window + static_cast<u32>(reinterpret_cast<u64>(pointer));
}
FASTGEMM_DEVICE u16 ld_shared_u16(u32 address) {
  u16 value;
  emulated::machine().ld_shared(address, &value, sizeof value);
  return value;
}
FASTGEMM_DEVICE Chunk ld_shared_v4(u32 address) {
  Chunk c;
  emulated::machine().ld_shared(address, &c, sizeof c);
  return c;
}
FASTGEMM_DEVICE void st_shared_v4(u32 address, const Chunk& c) {
  emulated::machine().st_shared(address, &c, sizeof c);
}
FASTGEMM_DEVICE float ld_shared_f32(u32 address) {
  float value;
  emulated::machine().ld_shared(address, &value, sizeof value);
  return value;
}
FASTGEMM_DEVICE void st_shared_f32(u32 address, float x) {
  emulated::machine().st_shared(address, &x, sizeof x);
}
FASTGEMM_DEVICE void st_shared_v2_f32(u32 address, float x, float y) {
  const float pair[2] = {x, y};
  emulated::machine().st_shared(address, pair, sizeof pair);
}

}  // namespace fastgemm::ptx
