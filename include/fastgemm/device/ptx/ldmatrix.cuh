// Warp-wide loads of 8x8 matrices of 16-bit elements (sm_75): PTX ISA, "ldmatrix".
#pragma once

#include "fastgemm/device/types.cuh"

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/ldmatrix.cuh"
#else

namespace fastgemm::ptx {

// Four 8x8 matrices. Lane l gives the address of row l % 8 of matrix l / 8 (16 bytes, 16-byte
// aligned); it gets, of matrix i in r[i], the elements (row l / 4, columns 2 * (l % 4) and + 1).
FASTGEMM_DEVICE void ldmatrix_x4(u32 (&r)[4], u32 row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row_address)
               : "memory");
}

// The same, each matrix transposed on the way: lane l gets, of column l / 4, rows 2 * (l % 4), + 1.
FASTGEMM_DEVICE void ldmatrix_x4_trans(u32 (&r)[4], u32 row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row_address)
               : "memory");
}

}  // namespace fastgemm::ptx

#endif
