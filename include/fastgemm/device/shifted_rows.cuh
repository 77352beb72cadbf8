// Rows that begin anywhere, in shared memory: the aligned chunks that hold them.
#pragma once

#include "fastgemm/device/ptx/shift.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm {

// The aligned chunk that holds the element at `p`, and how many elements of it lie before that one.
FASTGEMM_DEVICE const u16* chunk_of(const u16* p) {
  return reinterpret_cast<const u16*>(reinterpret_cast<u64>(p) / CHUNK_BYTES * CHUNK_BYTES);
}
FASTGEMM_DEVICE int shift_of(const u16* p) {
  return static_cast<int>(reinterpret_cast<u64>(p) % CHUNK_BYTES / 2);
}

// Eight elements from the one at `shift` of two chunks on: words move down by two, one and half a
// word, as its bits say.
FASTGEMM_DEVICE Chunk cut_out(const Chunk& low, const Chunk& high, int shift) {
  u32 words[8];
#pragma unroll
  for (int i = 0; i < 4; ++i) words[i] = low.word[i], words[4 + i] = high.word[i];
  if (shift & 4)
#pragma unroll
    for (int i = 0; i < 6; ++i) words[i] = words[i + 2];
  if (shift & 2)
#pragma unroll
    for (int i = 0; i < 5; ++i) words[i] = words[i + 1];
  Chunk chunk;
#pragma unroll
  for (int i = 0; i < 4; ++i) chunk.word[i] = ptx::shf_r(words[i], words[i + 1], shift % 2 * 16);
  return chunk;
}

// Copies of 16 bytes move aligned chunks. A row of such a tile (OperandTile::SHIFTED) is therefore
// those that hold it, and begins `shift` elements into the first of them:
//
//   row 0, shift 3 | . . . 0 1 2 3 4 | 5 6 7 ..  59 60 | 61 62 63 . . . . . |
//   row 1, shift 2 | . . 0 1 2 3 4 5 | 6 7 8 ..  60 61 | 62 63 . . . . . . |    the pitch is odd
//
// Rows eight apart have one shift, and so has a row in all k-tiles, whatever the pitch. ldmatrix
// and wgmma would read aligned chunks too. Family sm80 gathers fragments from single elements
// instead, sm90 straightens the rows first (produce_shifted.cuh). What stands where the points are
// is left out by both.
//
// This is where a lane's elements of a 16 x 16 fragment are found: in bytes from the fragment's
// corner (outer, k), those of (l / 4, 2 * (l % 4)) and of its k-neighbour.
template <class Tile, bool SHIFTED = Tile::SHIFTED>
class ShiftedRows {
  using Layout = typename Tile::Layout;

 public:
  // `origin`: element (0, 0) of the CTA's first k-tile.
  FASTGEMM_DEVICE ShiftedRows(const u16* origin, i64 outer_stride, i64 k_stride) {
    const int lane = ptx::thread_index() % WARP_THREADS;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int outer = lane / 4, k = 2 * (lane % 4) + i;
      const int row = Tile::MAJOR == Major::K ? outer : k;
      const int shift =
          shift_of(origin + row * (Tile::MAJOR == Major::K ? outer_stride : k_stride));
      place_[i] = offset(outer, k) + 2 * shift;
    }
  }

  // Of the lane's element i in the fragment at (outer, k), multiples of eight.
  FASTGEMM_DEVICE int place(int outer, int k, int i) const { return place_[i] + offset(outer, k); }

 private:
  FASTGEMM_DEVICE static int offset(int outer, int k) {
    return Tile::MAJOR == Major::K ? outer * Layout::ROW_BYTES + 2 * k
                                   : k * Layout::ROW_BYTES + 2 * outer;
  }

  int place_[2];
};

// Rows that are read as they lie have nothing to remember.
template <class Tile>
class ShiftedRows<Tile, false> {
 public:
  FASTGEMM_DEVICE ShiftedRows(const u16*, i64, i64) {}
};

}  // namespace fastgemm
