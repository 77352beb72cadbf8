// How WGMMA is told where an operand lies in shared memory: PTX ISA, "Matrix Descriptor Format".
#pragma once

#include "fastgemm/device/ring_sm90.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm {

// All addresses and offsets count 16-byte units:
//
//   bits 0-13   start address
//   bits 16-29  leading offset: MN-major: from one 64-wide box to the next; K-major: not used
//   bits 32-45  stride offset: from one group of 8 rows to the next, 1024 bytes
//   bits 62-63  1: 128-byte swizzle
template <class Tile>
struct WgmmaDescriptor {
  static constexpr u64 CONSTANT =
      u64(1) << 62 | u64(1024 / 16) << 32 | u64(Tile::COLUMN_BYTES / 16 & 0x3fff) << 16;

  // Of the 64 (or N) rows or columns from `outer` on, in k-slice 0; `outer` is a multiple of 8
  // (K-major) or 64. In a cluster the address has the CTA's rank in its upper bits: they must not
  // reach the offsets' fields.
  FASTGEMM_DEVICE static u64 make(u32 tile, int outer) {
    const int offset =
        Tile::MAJOR == Major::K ? outer * Tile::ROW_BYTES : outer / 64 * Tile::COLUMN_BYTES;
    return CONSTANT | ((tile + offset) & 0x3ffff) >> 4;
  }

  // What k-slice `slice`, 16 further along K each, adds. K-major: 32 bytes to the right within the
  // atom (the hardware swizzles the address), four to a column. MN-major: 16 rows down.
  FASTGEMM_DEVICE static constexpr u64 slice_offset(int slice) {
    return (Tile::MAJOR == Major::K ? slice / 4 * Tile::COLUMN_BYTES + slice % 4 * 32
                                    : slice * 16 * Tile::ROW_BYTES) /
           16;
  }
};

}  // namespace fastgemm
