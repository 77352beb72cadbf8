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
//
// A row has FULL chunks, and one more that its shift fills. Where the threads' rows are whole
// eights apart, a thread has one shift and one place in all of its rows, and steps down by a
// constant; the last chunks come apart from that.
template <class Tile, int THREADS>
class ShiftedTileLoader {
  using Layout = typename Tile::Layout;
  static constexpr int FULL = Layout::CHUNKS - 1;
  static constexpr bool STEADY = THREADS % FULL == 0 && THREADS / FULL % 8 == 0;
  static constexpr int ROWS_AT_ONCE = THREADS / FULL;
  static constexpr int ROUNDS = (Layout::ROWS + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
  static constexpr int TOTAL = Layout::ROWS * Layout::CHUNKS;

 public:
  // `thread`: of THREADS. `lowest`: the operand's lowest address. `origin`: element (0, 0) of the
  // CTA's first k-tile. `outer_left`: how many of the tile's rows of A or columns of B exist.
  FASTGEMM_DEVICE ShiftedTileLoader(int thread, const u16* lowest, const u16* origin,
                                    i64 outer_stride, i64 k_stride, i64 outer_left)
      : thread_(thread),
        row_stride_(Tile::MAJOR == Major::K ? outer_stride : k_stride),
        tile_stride_(Tile::DEPTH * k_stride),
        outer_left_(static_cast<int>(min_of<i64>(outer_left, 1 << 30))),
        lowest_(lowest),
        first_(origin),
        source_(origin) {}

  // Moves to k-tile `t`.
  FASTGEMM_DEVICE void seek(int t) { source_ = first_ + t * tile_stride_; }

  // Starts the copy of the current k-tile, of whose depth `k_left` exists, and moves on to the
  // next.
  FASTGEMM_DEVICE void fetch_async(u32 shared_tile, int k_left) {
    fetch_chunks<1>(shared_tile, k_left);
    source_ += tile_stride_;
  }
  // The same for a k-tile whose depth exists: what the main loop does.
  FASTGEMM_DEVICE void fetch_deep_async(u32 shared_tile) {
    const u16* lowest_row = row_stride_ < 0 ? source_ + (Layout::ROWS - 1) * row_stride_ : source_;
    if (!STEADY || chunk_of(lowest_row) < lowest_)
      fetch_chunks<STEADY ? 1 : 4>(shared_tile, Tile::DEPTH);
    else
      fetch_steadily(shared_tile);
    source_ += tile_stride_;
  }

 private:
  // What lies before a row's first element is read with it, but not from below the operand: the
  // few chunks that begin there are read one by one.
  template <int UNROLL>
  FASTGEMM_DEVICE void fetch_chunks(u32 shared_tile, int k_left) const {
    const int rows_left = Tile::MAJOR == Major::K ? outer_left_ : k_left;
    const int cols_left = Tile::MAJOR == Major::K ? k_left : outer_left_;
#pragma unroll UNROLL
    for (int i = thread_; i < TOTAL; i += THREADS) {
      const int row = i / Layout::CHUNKS, col = i % Layout::CHUNKS * CHUNK_ELEMENTS;
      const u16* place = source_ + row * row_stride_ + col;
      const u16* chunk = chunk_of(place);
      const int shift = shift_of(place), end = row < rows_left ? end_of(col, shift, cols_left) : 0;
      const u32 to = shared_tile + i * CHUNK_BYTES;
      if (chunk < lowest_)
        ptx::st_shared_v4(to, read_one_by_one(chunk, 1, shift - col, end));
      else
        ptx::cp_async<CHUNK_BYTES>(to, chunk, 2 * end);
    }
  }

  FASTGEMM_DEVICE void fetch_steadily(u32 shared_tile) const {
    const int rows_left = Tile::MAJOR == Major::K ? outer_left_ : Layout::ROWS;
    const int cols_left = Tile::MAJOR == Major::K ? Tile::DEPTH : outer_left_;
    const int first = thread_ / FULL, col = thread_ % FULL * CHUNK_ELEMENTS;
    const u16* place = source_ + first * row_stride_ + col;
    const u16* chunk = chunk_of(place);
    const int bytes = 2 * end_of(col, shift_of(place), cols_left);
    const u32 to = shared_tile + Layout::offset(first, col / CHUNK_ELEMENTS);
#pragma unroll
    for (int i = 0; i < ROUNDS; ++i, chunk += ROWS_AT_ONCE * row_stride_) {
      const int row = first + i * ROWS_AT_ONCE;
      if (Layout::ROWS % ROWS_AT_ONCE == 0 || row < Layout::ROWS)
        ptx::cp_async<CHUNK_BYTES>(to + i * ROWS_AT_ONCE * Layout::ROW_BYTES, chunk,
                                   row < rows_left ? bytes : 0);
    }
#pragma unroll
    for (int i = 0; i < Layout::ROWS; i += THREADS) {
      const int row = i + thread_;
      const u16* last = source_ + row * row_stride_ + FULL * CHUNK_ELEMENTS;
      const int end =
          row < rows_left ? end_of(FULL * CHUNK_ELEMENTS, shift_of(last), cols_left) : 0;
      if (Layout::ROWS % THREADS == 0 || row < Layout::ROWS)
        ptx::cp_async<CHUNK_BYTES>(shared_tile + Layout::offset(row, FULL), chunk_of(last),
                                   2 * end);
    }
  }

  // Where in the chunk at column `col` of a row, shifted, the row's elements end.
  FASTGEMM_DEVICE static int end_of(int col, int shift, int cols_left) {
    return max_of(0, min_of(min_of(cols_left, Tile::COLS) - col + shift, CHUNK_ELEMENTS));
  }

  int thread_;
  i64 row_stride_, tile_stride_;
  int outer_left_;
  const u16* lowest_;
  const u16* first_;   // element (0, 0) of k-tile 0
  const u16* source_;  // and of the current one
};

}  // namespace fastgemm
