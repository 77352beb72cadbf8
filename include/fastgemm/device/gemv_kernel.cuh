// The kernel of family gemv: a few rows of A times B on CUDA cores, where reading B is all the
// work.
#pragma once

#include "fastgemm/device/config.cuh"
#include "fastgemm/device/epilogue.cuh"
#include "fastgemm/device/params.cuh"
#include "fastgemm/device/ptx/barrier.cuh"
#include "fastgemm/device/ptx/convert.cuh"
#include "fastgemm/device/ptx/dependent_launch.cuh"
#include "fastgemm/device/ptx/global.cuh"
#include "fastgemm/device/ptx/shared.cuh"
#include "fastgemm/device/ptx/shuffle.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/raster.cuh"
#include "fastgemm/device/read_chunk.cuh"

namespace fastgemm {

// How a CTA's BLOCK_N columns and BLOCK_K elements of K are dealt to warps and lanes. A lane has
// COLS columns and, NUM_STAGES times, eight elements of K, which it reads in 16-byte chunks of B:
//
//   k contiguous: 32 lanes along K, each with     n contiguous: WARP_N / 8 lanes along N, the
//   others the chunks of WARP_N columns                  along K, each with a chunk of eight rows
//   of B
//
//           k  0       8      ..     248                  n  0       8      ..
//   column 0  | lane 0 | lane 1 | .. | lane 31 |     k 0..7  | lane 0 | lane 1 | ..
//   column 1  | lane 0 | lane 1 | .. | lane 31 |     k 8..15 | lane 4 | lane 5 | ..   (WARP_N = 32)
template <class Config>
struct GemvShape {
  static constexpr bool K_MAJOR = Config::B_MAJOR == Major::K;
  static constexpr int ROWS = Config::BLOCK_M;
  static constexpr int LANES_N = K_MAJOR ? 1 : Config::WARP_N / CHUNK_ELEMENTS;
  static constexpr int LANES_K = WARP_THREADS / LANES_N;
  static constexpr int COLS = Config::WARP_N / LANES_N;
  static constexpr int STAGE_K = LANES_K * CHUNK_ELEMENTS;  // of a warp
  static constexpr int WARP_K = STAGE_K * Config::NUM_STAGES;
  static constexpr int WARPS_K = Config::BLOCK_K / WARP_K;
  static constexpr int WARPS_N = Config::BLOCK_N / Config::WARP_N;
  static constexpr int READS = COLS * Config::NUM_STAGES;  // of B, under way at once in a lane
};

// Bytes of dynamic shared memory: the sums of every warp.
template <class Config>
constexpr int SHARED_BYTES = GemvShape<Config>::WARPS_K * Config::BLOCK_M * Config::BLOCK_N *
                             static_cast<int>(sizeof(float));

template <class Element>
FASTGEMM_DEVICE void unpack(const Chunk& chunk, float (&value)[CHUNK_ELEMENTS]) {
#pragma unroll
  for (int i = 0; i < CHUNK_ELEMENTS; ++i)
    value[i] = ptx::to_float(Element{}, static_cast<u16>(chunk.word[i / 2] >> i % 2 * 16));
}

// One lane's share of a CTA's columns and of its K.
template <class Config>
struct GemvLane {
  using Shape = GemvShape<Config>;
  using Input = typename Config::Input;
  static constexpr int ROWS = Shape::ROWS, COLS = Shape::COLS;
  static constexpr bool A_ALIGNED =
      Config::A_MAJOR == Major::K && Config::A_COPY_BYTES == CHUNK_BYTES;
  static constexpr bool B_ALIGNED = Config::B_COPY_BYTES == CHUNK_BYTES;
  using ReadB = ChunkRead<B_ALIGNED>;

  const u16* a;  // row 0 of the tile, k = 0
  const u16* b;  // column 0 of the lane, k = 0
  i64 a_m_stride, a_k_stride, b_n_stride, b_k_stride;
  int rows, cols;             // from there on in the product; the lane has ROWS and COLS of them
  int first_n, k_end, k_all;  // column 0 in B; where the CTA's K ends, and all of K
  float sum[ROWS][COLS];

  // Where read `i` of the step at k comes from, as ChunkRead::start takes it: body(source, stride,
  // valid, before, after). What lies before and behind a run of elements may be read with it, but
  // for B's first and last.
  template <class Body>
  FASTGEMM_DEVICE void source(int i, int k, Body body) const {
    const int chunk_k = k + i / COLS * Shape::STAGE_K;
    const i64 along = B_ALIGNED ? 1 : Shape::K_MAJOR ? b_k_stride : b_n_stride;
    if constexpr (Shape::K_MAJOR) {
      const int col = i % COLS;
      const bool whole = col < cols && chunk_k + CHUNK_ELEMENTS <= k_end;
      body(b + col * b_n_stride + chunk_k * along, along, whole ? CHUNK_ELEMENTS : 0,
           chunk_k + beside(first_n > 0, b_n_stride),
           k_all - chunk_k + beside(COLS < cols, b_n_stride));
    } else {
      const int row = chunk_k + i % COLS;
      body(b + row * b_k_stride, along, row < k_end ? cols : 0,
           first_n + beside(row > 0, b_k_stride), cols + beside(row + 1 < k_all, b_k_stride));
    }
  }

  FASTGEMM_DEVICE void prefetch(int k) const {
#pragma unroll
    for (int i = 0; i < Shape::READS; ++i)
      source(i, k, [](const u16* from, i64, int valid, int, int) {
        if (valid > 0) ptx::prefetch_l2(from);
      });
  }

  // Adds the products of one step's whole chunks: all reads of B first, so that they are under way
  // together.
  FASTGEMM_DEVICE void multiply(int k) {
    ReadB read_b[Shape::READS];
#pragma unroll
    for (int i = 0; i < Shape::READS; ++i)
      source(i, k, [&](const u16* from, i64 stride, int valid, int before, int after) {
        read_b[i].start(from, stride, valid, before, after);
      });
#pragma unroll
    for (int s = 0; s < Config::NUM_STAGES; ++s) {
      const int chunk_k = k + s * Shape::STAGE_K;
      float av[ROWS][CHUNK_ELEMENTS], bv[CHUNK_ELEMENTS];
#pragma unroll
      for (int m = 0; m < ROWS; ++m) unpack<Input>(read_a(m, chunk_k), av[m]);
#pragma unroll
      for (int i = 0; i < COLS; ++i) {
        unpack<Input>(read_b[s * COLS + i].finish(), bv);
#pragma unroll
        for (int m = 0; m < ROWS; ++m)
#pragma unroll
          for (int e = 0; e < CHUNK_ELEMENTS; ++e)
            if constexpr (Shape::K_MAJOR)
              sum[m][i] += av[m][e] * bv[e];  // chunk i: eight k of column i
            else
              sum[m][e] += av[m][i] * bv[e];  // chunk i: eight columns of row k + i
      }
    }
  }

  // Adds the products of the last k, which are no whole chunk, one k a lane.
  FASTGEMM_DEVICE void multiply_tail(int lane_k) {
#pragma unroll 1
    for (int k = k_end / CHUNK_ELEMENTS * CHUNK_ELEMENTS + lane_k; k < k_end; k += Shape::LANES_K) {
      float av[ROWS], bv[COLS];
#pragma unroll
      for (int m = 0; m < ROWS; ++m)
        av[m] = m < rows ? element(a + m * a_m_stride + k * a_k_stride) : 0;
#pragma unroll
      for (int c = 0; c < COLS; ++c)
        bv[c] = c < cols ? element(b + c * b_n_stride + k * b_k_stride) : 0;
#pragma unroll
      for (int m = 0; m < ROWS; ++m)
#pragma unroll
        for (int c = 0; c < COLS; ++c) sum[m][c] += av[m] * bv[c];
    }
  }

 private:
  FASTGEMM_DEVICE static int beside(bool has_neighbour, i64 pitch) {
    return has_neighbour && pitch >= CHUNK_ELEMENTS ? CHUNK_ELEMENTS : 0;
  }
  FASTGEMM_DEVICE static float element(const u16* p) {
    return ptx::to_float(Input{}, ptx::ld_global(p));
  }
  FASTGEMM_DEVICE Chunk read_a(int m, int k) const {
    const i64 along = A_ALIGNED ? 1 : a_k_stride;
    const u16* from = a + m * a_m_stride + k * along;
    const bool whole = m < rows && k + CHUNK_ELEMENTS <= k_end;
    if constexpr (A_ALIGNED) {
      Chunk chunk = {{0, 0, 0, 0}};
      if (whole) ptx::ld_global_words<4>(chunk.word, from);  // read by every CTA: kept in L1
      return chunk;
    } else {
      ChunkRead<false> read;
      read.start(from, along, whole ? CHUNK_ELEMENTS : 0, k, k_all - k);
      return read.finish();
    }
  }
};

template <class Config>
FASTGEMM_DEVICE void gemv_kernel(const GemmParams& p) {
  using Shape = GemvShape<Config>;
  constexpr int ROWS = Shape::ROWS, COLS = Shape::COLS;
  extern __shared__ Chunk shared_memory[];
  const u32 shared = ptx::cvta_to_shared(shared_memory);
  const int warp = ptx::thread_index() / WARP_THREADS, lane = ptx::thread_index() % WARP_THREADS;
  const int warp_n = warp / Shape::WARPS_K, warp_k = warp % Shape::WARPS_K;
  const int lane_n = lane % Shape::LANES_N, lane_k = lane / Shape::LANES_N;

  const TileIndex index = raster<0>(ptx::block_index(), p.tiles_m, p.tiles_n);
  const int k_tiles = static_cast<int>((p.k + Config::BLOCK_K - 1) / Config::BLOCK_K);
  const SplitIndex split =
      split_index<Config::SPLIT_K>(index.batch, k_tiles, p.splits, p.k_tiles_of_split);
  const int k_begin = split.first_k_tile * Config::BLOCK_K;
  const int k_end =
      static_cast<int>(min_of<i64>(p.k, i64(k_begin) + i64(split.k_tiles) * Config::BLOCK_K));
  const int first_k = k_begin + warp_k * Shape::WARP_K + lane_k * CHUNK_ELEMENTS;
  const int first_col = warp_n * Config::WARP_N + lane_n * COLS;  // of the tile
  const i64 m0 = i64(index.m) * Config::BLOCK_M, n0 = i64(index.n) * Config::BLOCK_N + first_col;

  GemvLane<Config> mine;
  mine.a = static_cast<const u16*>(p.a) + split.batch * p.a_batch_stride + m0 * p.a_m_stride;
  mine.b = static_cast<const u16*>(p.b) + split.batch * p.b_batch_stride + n0 * p.b_n_stride;
  mine.a_m_stride = p.a_m_stride;
  mine.a_k_stride = p.a_k_stride;
  mine.b_n_stride = p.b_n_stride;
  mine.b_k_stride = p.b_k_stride;
  mine.rows = static_cast<int>(min_of<i64>(p.m - m0, 1 << 30));
  mine.cols = static_cast<int>(min_of<i64>(p.n - n0, 1 << 30));
  mine.first_n = static_cast<int>(min_of<i64>(n0, 1 << 30));
  mine.k_end = k_end;
  mine.k_all = static_cast<int>(p.k);
#pragma unroll
  for (int m = 0; m < ROWS; ++m)
#pragma unroll
    for (int c = 0; c < COLS; ++c) mine.sum[m][c] = 0;

  // B's first chunks come into L2 while the kernel before still runs. That is safe even when that
  // one writes them: L2 is where writes arrive.
  if constexpr (Config::DEPENDENT_LAUNCH) {
    ptx::griddepcontrol_launch_dependents();
    mine.prefetch(first_k);
    ptx::griddepcontrol_wait();
  }
#pragma unroll 1
  for (int k = first_k; k < k_end; k += Config::BLOCK_K) mine.multiply(k);
  if (warp_k == Shape::WARPS_K - 1) mine.multiply_tail(lane_k);

  // The lanes along K add up in a tree, then the warps along K in their order: [warp_k][row][col].
#pragma unroll
  for (int m = 0; m < ROWS; ++m)
#pragma unroll
    for (int c = 0; c < COLS; ++c) {
#pragma unroll
      for (int mask = Shape::LANES_N; mask < WARP_THREADS; mask *= 2)
        mine.sum[m][c] += ptx::shfl_bfly(mine.sum[m][c], mask);
      if (lane_k == 0)
        ptx::st_shared_f32(shared + ((warp_k * ROWS + m) * Config::BLOCK_N + first_col + c) * 4,
                           mine.sum[m][c]);
    }
  ptx::bar_sync();
  constexpr int THREADS = Shape::WARPS_K * Shape::WARPS_N * WARP_THREADS;
  const OutputTile<Config> out(p, index);
  for (int i = ptx::thread_index(); i < ROWS * Config::BLOCK_N; i += THREADS) {
    float total[1] = {0};
#pragma unroll
    for (int w = 0; w < Shape::WARPS_K; ++w)
      total[0] += ptx::ld_shared_f32(shared + (w * ROWS * Config::BLOCK_N + i) * 4);
    out.template finish<1>(i / Config::BLOCK_N, i % Config::BLOCK_N, total);
  }
}

}  // namespace fastgemm
