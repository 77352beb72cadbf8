// Host bodies of ptx/mma.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE void mma_m16n8k16(Float16, float* d, const u32* a, u32 b0, u32 b1) {
  const u32 b[2] = {b0, b1};
  emulated::machine().mma(emulated::MmaKind::M16N8K16_F16, d, a, b);
}
FASTGEMM_DEVICE void mma_m16n8k16(Bfloat16, float* d, const u32* a, u32 b0, u32 b1) {
  const u32 b[2] = {b0, b1};
  emulated::machine().mma(emulated::MmaKind::M16N8K16_BF16, d, a, b);
}
FASTGEMM_DEVICE void mma_m16n8k8(Float16, float* d, u32 a0, u32 a1, u32 b) {
  const u32 a[2] = {a0, a1};
  emulated::machine().mma(emulated::MmaKind::M16N8K8_F16, d, a, &b);
}
FASTGEMM_DEVICE void mma_m8n8k4(Float16, float* d, const u32* a, const u32* b) {
  emulated::machine().mma(emulated::MmaKind::M8N8K4_F16, d, a, b);
}

}  // namespace fastgemm::ptx
