// Where an element lies in shared memory: rows of 16-byte chunks, permuted against bank conflicts.
#pragma once

#include "fastgemm/device/types.cuh"

namespace fastgemm {

// Shared memory has 32 banks of 4 bytes: 128 bytes, eight chunks, are served at once. ldmatrix
// reads the same chunk column of eight consecutive rows; stored plainly, those eight chunks fall
// into few banks:
//
//   plain, 128-byte rows                     swizzled: chunk ^ (row % 8)
//   row 0 | 0 1 2 3 4 5 6 7                  row 0 | 0 1 2 3 4 5 6 7
//   row 1 | 0 1 2 3 4 5 6 7                  row 1 | 1 0 3 2 5 4 7 6
//   row 2 | 0 1 2 3 4 5 6 7                  row 2 | 2 3 0 1 6 7 4 5
//   ...     column 0: always bank group 0    ...     column 0: bank groups 0 1 2 3 4 5 6 7
//
// A row of CHUNKS chunks starts at bank group (row * CHUNKS) % 8. With G the largest power of two
// that divides CHUNKS (8 at most), rows take turns over 8 / G starting points, so the XOR has to
// change every 8 / G rows and permutes within groups of G chunks:
//
//   byte address bits    row ... | chunk .. c2 c1 c0 | 0 0 0 0
//   G = 8                             ^  r2 r1 r0
//   G = 4                             ^     r2 r1
//   G = 2                             ^        r2
template <int ROWS_, int COLS_, bool SWIZZLE>
struct SharedLayout {
  static constexpr int ROWS = ROWS_;
  static constexpr int COLS = COLS_;  // 16-bit elements
  static constexpr int CHUNKS = COLS / CHUNK_ELEMENTS;
  static constexpr int ROW_BYTES = CHUNKS * CHUNK_BYTES;
  static constexpr int BYTES = ROWS * ROW_BYTES;
  static_assert(COLS % CHUNK_ELEMENTS == 0, "rows are whole chunks");

  static constexpr int GROUP = (CHUNKS & -CHUNKS) < 8 ? (CHUNKS & -CHUNKS) : 8;
  static constexpr int ROWS_PER_STEP = 8 / GROUP;

  // Bytes from the start of the tile to chunk `chunk` of row `row`.
  FASTGEMM_DEVICE static int offset(int row, int chunk) {
    const int place = SWIZZLE ? chunk ^ (row / ROWS_PER_STEP % GROUP) : chunk;
    return row * ROW_BYTES + place * CHUNK_BYTES;
  }
};

}  // namespace fastgemm
