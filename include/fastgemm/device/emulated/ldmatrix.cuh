// Host bodies of ptx/ldmatrix.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE void ldmatrix_x4(u32 (&r)[4], u32 row_address) {
  emulated::machine().ldmatrix_x4(row_address, r, false);
}
FASTGEMM_DEVICE void ldmatrix_x4_trans(u32 (&r)[4], u32 row_address) {
  emulated::machine().ldmatrix_x4(row_address, r, true);
}

}  // namespace fastgemm::ptx
