// Host bodies of ptx/stmatrix.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE void stmatrix_x4(u32 row_address, const u32 (&r)[4]) {
  emulated::machine().stmatrix_x4(row_address, r, false);
}
FASTGEMM_DEVICE void stmatrix_x4_trans(u32 row_address, const u32 (&r)[4]) {
  emulated::machine().stmatrix_x4(row_address, r, true);
}

}  // namespace fastgemm::ptx
