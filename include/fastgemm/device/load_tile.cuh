// Brings one k-tile of an operand into shared memory: any extents, strides and alignment.
#pragma once

#include "fastgemm/device/config.cuh"
#include "fastgemm/device/ptx/cp_async.cuh"
#include "fastgemm/device/ptx/global.cuh"
#include "fastgemm/device/ptx/shared.cuh"
#include "fastgemm/device/ptx/thread.cuh"

namespace fastgemm {

// Eight elements, of which the first `valid` exist in memory and the rest are zero. COPY_BYTES is
// the widest access that the operand's alignment allows; 2 stands for single elements at any
// stride.
template <int COPY_BYTES>
FASTGEMM_DEVICE Chunk load_chunk(const u16* source, i64 col_stride, int valid) {
  Chunk chunk = {{0, 0, 0, 0}};
  constexpr int PIECE = COPY_BYTES / 2;  // elements
  if constexpr (COPY_BYTES > 2) {
    if (valid >= CHUNK_ELEMENTS) {
#pragma unroll
      for (int i = 0; i < CHUNK_ELEMENTS; i += PIECE)
        ptx::ld_global_words<PIECE / 2>(chunk.word + i / 2, source + i);
      return chunk;
    }
  }
#pragma unroll
  for (int i = 0; i < CHUNK_ELEMENTS; ++i)
    if (i < valid) {
      const u32 bits = ptx::ld_global(source + (COPY_BYTES > 2 ? i : i * col_stride));
      chunk.word[i / 2] |= bits << (i % 2 * 16);
    }
  return chunk;
}

// The same by cp.async, which writes the zeros itself; single elements have to go through
// registers.
template <int COPY_BYTES>
FASTGEMM_DEVICE void copy_chunk_async(u32 shared, const u16* source, i64 col_stride, int valid) {
  if constexpr (COPY_BYTES == 2) {
    ptx::st_shared_v4(shared, load_chunk<2>(source, col_stride, valid));
  } else {
    constexpr int PIECE = COPY_BYTES / 2;
#pragma unroll
    for (int i = 0; i < CHUNK_ELEMENTS; i += PIECE) {
      const int in_piece = PIECE == CHUNK_ELEMENTS ? valid : max_of(0, min_of(valid - i, PIECE));
      ptx::cp_async<COPY_BYTES>(shared + 2 * i, source + i, 2 * in_piece);
    }
  }
}

// All eight elements exist, where index < limit, or none.
template <int COPY_BYTES>
FASTGEMM_DEVICE void copy_whole_chunk_async(u32 shared, const u16* source, int index, int limit) {
  constexpr int PIECE = COPY_BYTES / 2;
#pragma unroll
  for (int i = 0; i < CHUNK_ELEMENTS; i += PIECE)
    ptx::cp_async_below<COPY_BYTES>(shared + 2 * i, source + i, index, limit);
}

// One thread's share of an operand's k-tiles. A tile's chunks are dealt to the CTA's threads in
// order, so that neighbouring threads read neighbouring chunks of a row.
template <class Tile, int COPY_BYTES, int THREADS>
class TileLoader {
  using Layout = typename Tile::Layout;
  static constexpr int TOTAL = Layout::ROWS * Layout::CHUNKS;
  static constexpr int DEPTH = Tile::DEPTH;
  // With whole rows per round, a thread keeps its column and steps down by a constant number of
  // rows.
  static constexpr bool WHOLE_ROWS = THREADS % Layout::CHUNKS == 0;

 public:
  static constexpr int CHUNKS = (TOTAL + THREADS - 1) / THREADS;  // of one thread

  // `origin`: element (0, 0) of the CTA's first k-tile. `outer_left`: how many of the tile's rows
  // of A or columns of B exist.
  FASTGEMM_DEVICE TileLoader(const u16* origin, i64 outer_stride, i64 k_stride, i64 outer_left)
      : row_stride_(Tile::MAJOR == Major::K ? outer_stride : k_stride),
        col_stride_(COPY_BYTES > 2            ? 1
                    : Tile::MAJOR == Major::K ? k_stride
                                              : outer_stride),
        tile_stride_(DEPTH * k_stride),
        outer_left_(static_cast<int>(min_of<i64>(outer_left, 1 << 30))),
        first_(origin + row(0) * row_stride_ + col(0) * col_stride_),
        source_(first_) {}

  // Moves to k-tile `t`.
  FASTGEMM_DEVICE void seek(int t) { source_ = first_ + t * tile_stride_; }

  // Starts the copy of the current k-tile, of whose depth `k_left` exists, and moves on to the
  // next. Long code, so that its loop stays a loop.
  FASTGEMM_DEVICE void fetch_async(u32 shared_tile, int k_left) {
    for_each_source<1>(k_left, [&](int i, const u16* source, int valid) {
      copy_chunk_async<COPY_BYTES>(shared_tile + offset(i), source, col_stride_, valid);
    });
    source_ += tile_stride_;
  }

  // The same for a k-tile whose depth exists: what the main loop does. With k contiguous, whole
  // chunks exist or do not.
  FASTGEMM_DEVICE void fetch_deep_async(u32 shared_tile) {
    if constexpr (COPY_BYTES > 2 && Tile::MAJOR == Major::K) {
      const int limit = outer_left_ - row(0);
      for_each_source<CHUNKS>(DEPTH, [&](int i, const u16* source, int) {
        copy_whole_chunk_async<COPY_BYTES>(shared_tile + offset(i), source, row(i) - row(0), limit);
      });
    } else {
      constexpr int UNROLL = COPY_BYTES == 2 ? 1 : CHUNKS;
      const int in_row =
          exists_in_row(0, outer_left_);  // of every chunk, where a thread keeps its column
      for_each_source<UNROLL>(DEPTH, [&](int i, const u16* source, int valid) {
        const bool same = Tile::MAJOR == Major::MN && WHOLE_ROWS;
        copy_chunk_async<COPY_BYTES>(shared_tile + offset(i), source, col_stride_,
                                     same ? in_row : valid);
      });
    }
    source_ += tile_stride_;
  }

  // The same in two steps, through registers, for GPUs without cp.async.
  FASTGEMM_DEVICE void fetch(Chunk (&registers)[CHUNKS], int k_left) {
    for_each_source<CHUNKS>(k_left, [&](int i, const u16* source, int valid) {
      registers[i] = load_chunk<COPY_BYTES>(source, col_stride_, valid);
    });
    source_ += tile_stride_;
  }
  FASTGEMM_DEVICE void store(u32 shared_tile, const Chunk (&registers)[CHUNKS]) const {
#pragma unroll
    for (int i = 0; i < CHUNKS; ++i)
      if (exists(i)) ptx::st_shared_v4(shared_tile + offset(i), registers[i]);
  }

 private:
  // This thread's i-th chunk: its place in the tile.
  FASTGEMM_DEVICE static int index(int i) { return ptx::thread_index() + i * THREADS; }
  FASTGEMM_DEVICE static bool exists(int i) { return TOTAL % THREADS == 0 || index(i) < TOTAL; }
  FASTGEMM_DEVICE static int row(int i) {
    return WHOLE_ROWS ? ptx::thread_index() / Layout::CHUNKS + i * (THREADS / Layout::CHUNKS)
                      : index(i) / Layout::CHUNKS;
  }
  FASTGEMM_DEVICE static int col(int i) {
    return index(WHOLE_ROWS ? 0 : i) % Layout::CHUNKS * CHUNK_ELEMENTS;
  }
  FASTGEMM_DEVICE static int offset(int i) {
    // The swizzle repeats every 8 rows: where a round is a multiple of that, its offset is a
    // constant.
    constexpr int ROUND_ROWS = THREADS / Layout::CHUNKS;
    if constexpr (WHOLE_ROWS && ROUND_ROWS % 8 == 0)
      return Layout::offset(row(0), col(0) / CHUNK_ELEMENTS) + i * ROUND_ROWS * Layout::ROW_BYTES;
    return Layout::offset(row(i), col(i) / CHUNK_ELEMENTS);
  }

  // How many of a chunk's elements its row still has.
  FASTGEMM_DEVICE static int exists_in_row(int i, int cols_left) {
    return max_of(0, min_of(cols_left - col(i), CHUNK_ELEMENTS));
  }

  // Calls body(i, where the chunk comes from, how many of its elements exist).
  template <int UNROLL, class Body>
  FASTGEMM_DEVICE void for_each_source(int k_left, Body body) const {
    const int rows_left = Tile::MAJOR == Major::K ? outer_left_ : k_left;
    const int cols_left = Tile::MAJOR == Major::K ? k_left : outer_left_;
    const u16* source = source_;
#pragma unroll UNROLL
    for (int i = 0; i < CHUNKS; ++i) {
      if (exists(i)) body(i, source, row(i) < rows_left ? exists_in_row(i, cols_left) : 0);
      source += (row(i + 1) - row(i)) * row_stride_ + (col(i + 1) - col(i)) * col_stride_;
    }
  }

  i64 row_stride_, col_stride_, tile_stride_;
  int outer_left_;
  const u16* first_;   // of chunk 0 of k-tile 0
  const u16* source_;  // and of the current one
};

}  // namespace fastgemm
