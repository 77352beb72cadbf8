// Warp-wide stores of 8x8 matrices of 16-bit elements (sm_90): PTX ISA, "stmatrix".
#pragma once

#include "fastgemm/device/types.cuh"

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/stmatrix.cuh"
#else

namespace fastgemm::ptx {

// The reverse of ldmatrix_x4: lane l gives the address of row l % 8 of matrix l / 8, and of matrix
// i in r[i] the elements (row l / 4, columns 2 * (l % 4) and + 1).
FASTGEMM_DEVICE void stmatrix_x4(u32 row_address, const u32 (&r)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_address),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
      : "memory");
}

// The same, each matrix transposed on the way: what is stored as row l % 8 is its column l % 8.
FASTGEMM_DEVICE void stmatrix_x4_trans(u32 row_address, const u32 (&r)[4]) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_address),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
      : "memory");
}

}  // namespace fastgemm::ptx

#endif
