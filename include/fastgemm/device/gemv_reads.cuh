// Family gemv: how columns and K are dealt to warps and lanes, and where a lane reads A and B.
#pragma once

#include "fastgemm/device/config.cuh"
#include "fastgemm/device/params.cuh"
#include "fastgemm/device/ptx/global.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/read_chunk.cuh"

namespace fastgemm {

// A CTA has BLOCK_N columns of B and steps of BLOCK_K along K. Its warps lie beside each other
// (each has WARP_N columns) and along K, as do a warp's lanes. A lane has COLS columns and,
// NUM_STAGES times, eight elements of K, which it reads in 16-byte chunks of B:
//
//   k contiguous, CUDA cores                      n contiguous, CUDA cores (here WARP_N = 32)
//           k  0       8      ..     248                     n  0       8      ..
//   column 0  | lane 0 | lane 1 | .. | lane 31 |     k 0..7   | lane 0 | lane 1 | ..
//   column 1  | lane 0 | lane 1 | .. | lane 31 |     k 8..15  | lane 4 | lane 5 | ..
//
//   k contiguous, Tensor Cores: WARP_N = 16
//              k  0       8       16      24
//   column 0, 8  | lane 0 | lane 1 | lane 2 | lane 3 |
//   column 1, 9  | lane 4 | lane 5 | ..
template <class Config>
struct GemvShape {
  static constexpr bool K_MAJOR = Config::B_MAJOR == Major::K;
  static constexpr bool TENSOR = K_MAJOR && Config::BLOCK_M % 8 == 0;
  static constexpr int ROWS = Config::BLOCK_M;
  static constexpr int LANES_N = TENSOR ? 8 : K_MAJOR ? 1 : Config::WARP_N / CHUNK_ELEMENTS;
  static constexpr int LANES_K = WARP_THREADS / LANES_N;
  static constexpr int COLS = Config::WARP_N / LANES_N;  // of a lane, COL_STEP apart
  static constexpr int COL_STEP = TENSOR ? LANES_N : 1;
  static constexpr int STAGE_K = LANES_K * CHUNK_ELEMENTS;  // of a warp
  static constexpr int WARP_K = STAGE_K * Config::NUM_STAGES;
  static constexpr int WARPS_K = Config::BLOCK_K / WARP_K;
  static constexpr int WARPS_N = Config::BLOCK_N / Config::WARP_N;
  static constexpr int THREADS = WARPS_K * WARPS_N * WARP_THREADS;
  static constexpr int READS = COLS * Config::NUM_STAGES;  // of B, under way at once in a lane
  static_assert(!TENSOR || COLS == 2, "an mma tile has 16 columns of B");

  FASTGEMM_DEVICE static int lane_k(int lane) { return TENSOR ? lane % LANES_K : lane / LANES_N; }
  // The lane's first column among those of its warp.
  FASTGEMM_DEVICE static int lane_col(int lane) {
    return TENSOR ? lane / LANES_K : lane % LANES_N * COLS;
  }
};

template <class Config>
struct GemvReads {
  using Shape = GemvShape<Config>;
  static constexpr bool A_ALIGNED =
      Config::A_MAJOR == Major::K && Config::A_COPY_BYTES == CHUNK_BYTES;
  static constexpr bool B_ALIGNED = Config::B_COPY_BYTES == CHUNK_BYTES;
  using ReadB = ChunkRead<B_ALIGNED>;

  const u16* a;  // row 0 of the tile, k = 0
  const u16* b;  // column 0 of the lane, k = 0
  i64 a_m_stride, a_k_stride, b_n_stride, b_k_stride;
  int rows, cols;             // from there on in the product: a tile has ROWS of them, a lane COLS
  int first_n, k_end, k_all;  // column 0 in B; where the CTA's K ends, and all of K

  FASTGEMM_DEVICE GemvReads(const GemmParams& p, i64 batch, i64 m0, i64 n0, int k_end_)
      : a(static_cast<const u16*>(p.a) + batch * p.a_batch_stride + m0 * p.a_m_stride),
        b(static_cast<const u16*>(p.b) + batch * p.b_batch_stride + n0 * p.b_n_stride),
        a_m_stride(p.a_m_stride),
        a_k_stride(p.a_k_stride),
        b_n_stride(p.b_n_stride),
        b_k_stride(p.b_k_stride),
        rows(static_cast<int>(min_of<i64>(p.m - m0, 1 << 30))),
        cols(static_cast<int>(min_of<i64>(p.n - n0, 1 << 30))),
        first_n(static_cast<int>(min_of<i64>(n0, 1 << 30))),
        k_end(k_end_),
        k_all(static_cast<int>(p.k)) {}

  // Starts all reads of B's whole chunks for the step at k, so that they are under way together.
  FASTGEMM_DEVICE void start_b(ReadB (&read)[Shape::READS], int k) const {
#pragma unroll
    for (int i = 0; i < Shape::READS; ++i)
      source(i, k, [&](const u16* from, i64 stride, int valid, int before, int after) {
        read[i].start(from, stride, valid, before, after);
      });
  }

  // Brings them into L2.
  FASTGEMM_DEVICE void prefetch_b(int k) const {
#pragma unroll
    for (int i = 0; i < Shape::READS; ++i)
      source(i, k, [](const u16* from, i64, int valid, int, int) {
        if (valid > 0) ptx::prefetch_l2(from);
      });
  }

  // Eight elements of row m of A from k on, if they exist; every CTA reads them: L1 keeps them.
  FASTGEMM_DEVICE Chunk read_a(int m, int k) const {
    const i64 along = A_ALIGNED ? 1 : a_k_stride;
    const u16* from = a + m * a_m_stride + k * along;
    const bool whole = m < rows && k + CHUNK_ELEMENTS <= k_end;
    if constexpr (A_ALIGNED) {
      Chunk chunk = {{0, 0, 0, 0}};
      if (whole) ptx::ld_global_words<4>(chunk.word, from);
      return chunk;
    } else {
      ChunkRead<false> read;
      read.start(from, along, whole ? CHUNK_ELEMENTS : 0, k, k_all - k);
      return read.finish();
    }
  }

  // K that is no whole chunk begins here.
  FASTGEMM_DEVICE int tail() const { return k_end / CHUNK_ELEMENTS * CHUNK_ELEMENTS; }

 private:
  // Where read `i` of the step at k comes from, as ChunkRead::start takes it: body(source, stride,
  // valid, before, after). What lies before and behind a run of elements may be read with it, but
  // for B's first and last.
  template <class Body>
  FASTGEMM_DEVICE void source(int i, int k, Body body) const {
    constexpr int COLS = Shape::COLS;
    const int chunk_k = k + i / COLS * Shape::STAGE_K;
    const i64 along = B_ALIGNED ? 1 : Shape::K_MAJOR ? b_k_stride : b_n_stride;
    if constexpr (Shape::K_MAJOR) {
      const int col = i % COLS * Shape::COL_STEP;
      const bool whole = col < cols && chunk_k + CHUNK_ELEMENTS <= k_end;
      body(b + col * b_n_stride + chunk_k * along, along, whole ? CHUNK_ELEMENTS : 0,
           chunk_k + beside(first_n > 0, b_n_stride),
           k_all - chunk_k + beside((COLS - 1) * Shape::COL_STEP + 1 < cols, b_n_stride));
    } else {
      const int row = chunk_k + i % COLS;
      body(b + row * b_k_stride, along, row < k_end ? cols : 0,
           first_n + beside(row > 0, b_k_stride), cols + beside(row + 1 < k_all, b_k_stride));
    }
  }
  FASTGEMM_DEVICE static int beside(bool has_neighbour, i64 pitch) {
    return has_neighbour && pitch >= CHUNK_ELEMENTS ? CHUNK_ELEMENTS : 0;
  }
};

}  // namespace fastgemm
