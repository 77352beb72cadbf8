// How WGMMA is told where an operand lies in shared memory: PTX ISA, "Matrix Descriptor Format".
#pragma once

#include "fastgemm/device/ring_sm90.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm {

// All addresses and offsets count 16-byte units:
//
//   bits 0-13   start address
//   bits 16-29  leading offset: from one column (K-major) or box (MN-major) to the next. Of
//               swizzled K-major columns each holds a whole k-slice: not used
//   bits 32-45  stride offset: from one group of 8 rows to the next
//   bits 62-63  the swizzle; 0: none, 1: 128 bytes, 2: 64, 3: 32
//
// MN-major without a swizzle, the two offsets change places.
template <class Tile>
struct WgmmaDescriptor {
  static constexpr bool EXCHANGED = Tile::MAJOR == Major::MN && Tile::ROW_BYTES == 16;
  static constexpr u64 COLUMN = Tile::COLUMN_BYTES / 16 & 0x3fff, ROWS_8 = 8 * Tile::ROW_BYTES / 16;
  static constexpr u64 SWIZZLE = Tile::ROW_BYTES == 128  ? 1
                                 : Tile::ROW_BYTES == 64 ? 2
                                 : Tile::ROW_BYTES == 32 ? 3
                                                         : 0;
  static constexpr u64 CONSTANT =
      SWIZZLE << 62 | (EXCHANGED ? COLUMN : ROWS_8) << 32 | (EXCHANGED ? ROWS_8 : COLUMN) << 16;

  // Of the 64 (or N) rows or columns from `outer` on, in k-slice 0. In a cluster the address has
  // the CTA's rank in its upper bits: they must not reach the offsets' fields.
  FASTGEMM_DEVICE static u64 make(u32 tile, int outer) {
    return CONSTANT + ((tile & 0x3ffff) >> 4) + outer_offset(outer);
  }

  // What `outer` rows or columns on add: a multiple of 8 (K-major) or 64.
  FASTGEMM_DEVICE static constexpr u32 outer_offset(int outer) {
    return (Tile::MAJOR == Major::K ? outer * Tile::ROW_BYTES
                                    : outer / Tile::SPAN * Tile::COLUMN_BYTES) /
           16;
  }

  // What k-slice `slice`, 16 further along K each, adds. K-major: 32 bytes to the right within the
  // atom (the hardware swizzles the address), or whole columns. MN-major: 16 rows down.
  FASTGEMM_DEVICE static constexpr u64 slice_offset(int slice) {
    const int k = slice * 16;
    return (Tile::MAJOR == Major::K ? k / Tile::SPAN * Tile::COLUMN_BYTES + k % Tile::SPAN * 2
                                    : k * Tile::ROW_BYTES) /
           16;
  }
};

}  // namespace fastgemm
