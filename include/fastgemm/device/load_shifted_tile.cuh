// Brings one k-tile of an operand whose rows begin anywhere into shared memory, 16 bytes at a time.
#pragma once

#include "fastgemm/device/config.cuh"
#include "fastgemm/device/ptx/cp_async.cuh"
#include "fastgemm/device/ptx/shared.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/read_chunk.cuh"
#include "fastgemm/device/shifted_rows.cuh"

namespace fastgemm {

// One thread's share of an operand's k-tiles: aligned chunks with what lies in them beside the
// row's elements, for which 2-byte alignment and a unit stride are enough. In place of what lies
// behind the row's end come zeros, and nothing is read there.
template <class Tile, int THREADS>
class ShiftedTileLoader {
  using Layout = typename Tile::Layout;
  static constexpr int TOTAL = Layout::ROWS * Layout::CHUNKS;
  static constexpr int CHUNKS = (TOTAL + THREADS - 1) / THREADS;  // of one thread

 public:
  // `lowest`: the operand's lowest address. `origin`: element (0, 0) of the CTA's first k-tile.
  // `outer_left`: how many of the tile's rows of A or columns of B exist.
  FASTGEMM_DEVICE ShiftedTileLoader(const u16* lowest, const u16* origin, i64 outer_stride,
                                    i64 k_stride, i64 outer_left)
      : row_stride_(Tile::MAJOR == Major::K ? outer_stride : k_stride),
        tile_stride_(Tile::DEPTH * k_stride),
        outer_left_(static_cast<int>(min_of<i64>(outer_left, 1 << 30))),
        lowest_(lowest),
        first_(origin),
        source_(origin) {}

  // Moves to k-tile `t`.
  FASTGEMM_DEVICE void seek(int t) { source_ = first_ + t * tile_stride_; }

  // Starts the copy of the current k-tile, of whose depth `k_left` exists, and moves on to the
  // next. Long code, so that its loop stays a loop.
  FASTGEMM_DEVICE void fetch_async(u32 shared_tile, int k_left) { fetch<1>(shared_tile, k_left); }
  // The same for a k-tile whose depth exists: what the main loop does.
  FASTGEMM_DEVICE void fetch_deep_async(u32 shared_tile) { fetch<4>(shared_tile, Tile::DEPTH); }

 private:
  // What lies before a row's first element is read with it, but not from below the operand: the
  // few chunks that begin there are read one by one, in a loop of their own.
  template <int UNROLL>
  FASTGEMM_DEVICE void fetch(u32 shared_tile, int k_left) {
    bool some_below = false;
    for_each_chunk<UNROLL>(k_left, [&](int at, const u16* source, int, int end) {
      const bool below = source < lowest_;
      some_below |= below;
      if (!below) ptx::cp_async<CHUNK_BYTES>(shared_tile + at, source, 2 * end);
    });
    if (some_below)
      for_each_chunk<1>(k_left, [&](int at, const u16* source, int first, int end) {
        if (source < lowest_)
          ptx::st_shared_v4(shared_tile + at, read_one_by_one(source, 1, first, end));
      });
    source_ += tile_stride_;
  }

  // Calls body(bytes to the chunk in the tile, the aligned chunk in memory, which of its elements
  // is the row's first that exists, and where those end: 0 where there are none).
  template <int UNROLL, class Body>
  FASTGEMM_DEVICE void for_each_chunk(int k_left, Body body) const {
    const int rows_left = Tile::MAJOR == Major::K ? outer_left_ : k_left;
    const int cols_left = Tile::MAJOR == Major::K ? k_left : outer_left_;
#pragma unroll UNROLL
    for (int i = 0; i < CHUNKS; ++i) {
      const u32 index = ptx::thread_index() + i * THREADS;
      if (TOTAL % THREADS != 0 && index >= TOTAL) return;
      const int row = index / Layout::CHUNKS, col = index % Layout::CHUNKS * CHUNK_ELEMENTS;
      const u16* begin = source_ + row * row_stride_;
      const int shift = shift_of(begin);
      const int end = row < rows_left ? shift + min_of(cols_left, Tile::COLS) - col : 0;
      body(index * CHUNK_BYTES, chunk_of(begin) + col, shift - col,
           max_of(0, min_of(end, CHUNK_ELEMENTS)));
    }
  }

  i64 row_stride_, tile_stride_;
  int outer_left_;
  const u16* lowest_;
  const u16* first_;   // of row 0 of k-tile 0
  const u16* source_;  // and of the current one
};

}  // namespace fastgemm
