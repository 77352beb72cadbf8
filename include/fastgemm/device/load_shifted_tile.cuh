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
// behind the row's end come zeros, and nothing is read there. A thread has one place in the rows,
// and steps down by a constant number of them; the few threads that are left have none.
template <class Tile, int THREADS>
class ShiftedTileLoader {
  using Layout = typename Tile::Layout;
  static constexpr int ROWS_AT_ONCE = THREADS / Layout::CHUNKS;
  static constexpr int ROUNDS = (Layout::ROWS + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
  static_assert(ROWS_AT_ONCE > 0, "the threads bring at least a row at once");

 public:
  // `lowest`: the operand's lowest address. `origin`: element (0, 0) of the CTA's first k-tile.
  // `outer_left`: how many of the tile's rows of A or columns of B exist.
  FASTGEMM_DEVICE ShiftedTileLoader(const u16* lowest, const u16* origin, i64 outer_stride,
                                    i64 k_stride, i64 outer_left)
      : row_(ptx::thread_index() / Layout::CHUNKS),
        col_(ptx::thread_index() % Layout::CHUNKS * CHUNK_ELEMENTS),
        step_(ROWS_AT_ONCE * (Tile::MAJOR == Major::K ? outer_stride : k_stride)),
        tile_stride_(Tile::DEPTH * k_stride),
        outer_left_(static_cast<int>(min_of<i64>(outer_left, 1 << 30))),
        lowest_(lowest),
        first_(origin + row_ * (Tile::MAJOR == Major::K ? outer_stride : k_stride) + col_),
        source_(first_) {
    if (row_ >= ROWS_AT_ONCE) row_ = Layout::ROWS;
  }

  // Moves to k-tile `t`.
  FASTGEMM_DEVICE void seek(int t) { source_ = first_ + t * tile_stride_; }

  // Starts the copy of the current k-tile, of whose depth `k_left` exists, and moves on to the
  // next.
  FASTGEMM_DEVICE void fetch_async(u32 shared_tile, int k_left) {
    fetch_carefully(shared_tile, k_left);
    source_ += tile_stride_;
  }
  // The same for a k-tile whose depth exists: what the main loop does.
  FASTGEMM_DEVICE void fetch_deep_async(u32 shared_tile) {
    const u16* lowest_place = step_ < 0 ? source_ + (ROUNDS - 1) * step_ : source_;
    if (chunk_of(lowest_place) < lowest_)
      fetch_carefully(shared_tile, Tile::DEPTH);
    else
      for_each_chunk<ROUNDS <= 10 ? ROUNDS : 4>(
          Tile::DEPTH, [&](int at, const u16* chunk, int, int end) {
            ptx::cp_async<CHUNK_BYTES>(shared_tile + at, chunk, 2 * end);
          });
    source_ += tile_stride_;
  }

 private:
  // What lies before a row's first element is read with it, but not from below the operand: the
  // few chunks that begin there are read one by one.
  FASTGEMM_DEVICE void fetch_carefully(u32 shared_tile, int k_left) const {
    for_each_chunk<1>(k_left, [&](int at, const u16* chunk, int first, int end) {
      if (chunk < lowest_)
        ptx::st_shared_v4(shared_tile + at, read_one_by_one(chunk, 1, first, end));
      else
        ptx::cp_async<CHUNK_BYTES>(shared_tile + at, chunk, 2 * end);
    });
  }

  // Calls body(bytes to the chunk in the tile, the aligned chunk in memory, which of its elements
  // is the row's first that exists, and where those end: 0 where there are none).
  template <int UNROLL, class Body>
  FASTGEMM_DEVICE void for_each_chunk(int k_left, Body body) const {
    const int rows_left = Tile::MAJOR == Major::K ? outer_left_ : k_left;
    const int cols_left = min_of(Tile::MAJOR == Major::K ? k_left : outer_left_, Tile::COLS) - col_;
    const u16* place = source_;
#pragma unroll UNROLL
    for (int i = 0; i < ROUNDS; ++i, place += step_) {
      const int row = row_ + i * ROWS_AT_ONCE, shift = shift_of(place);
      const int end = row < rows_left ? max_of(0, min_of(cols_left + shift, CHUNK_ELEMENTS)) : 0;
      if (row < Layout::ROWS)
        body((ptx::thread_index() + i * ROWS_AT_ONCE * Layout::CHUNKS) * CHUNK_BYTES,
             chunk_of(place), shift - col_, end);
    }
  }

  int row_, col_;  // of this thread's first chunk, as if its row began at one
  i64 step_, tile_stride_;
  int outer_left_;
  const u16* lowest_;
  const u16* first_;   // (row_, col_) of k-tile 0
  const u16* source_;  // and of the current one
};

}  // namespace fastgemm
