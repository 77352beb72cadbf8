// Family gemv: a lane's sums, on CUDA cores for a few rows of A and on Tensor Cores for more.
#pragma once

#include "fastgemm/device/gemv_reads.cuh"
#include "fastgemm/device/load_tile.cuh"
#include "fastgemm/device/ptx/convert.cuh"
#include "fastgemm/device/ptx/mma.cuh"
#include "fastgemm/device/ptx/shared.cuh"
#include "fastgemm/device/ptx/shuffle.cuh"

namespace fastgemm {

template <class Element>
FASTGEMM_DEVICE void unpack(const Chunk& chunk, float (&value)[CHUNK_ELEMENTS]) {
#pragma unroll
  for (int i = 0; i < CHUNK_ELEMENTS; ++i)
    value[i] = ptx::to_float(Element{}, static_cast<u16>(chunk.word[i / 2] >> i % 2 * 16));
}

// Each lane adds up its own K; store() adds up the lanes.
template <class Config>
struct CudaCoreSums {
  using Shape = GemvShape<Config>;
  using Input = typename Config::Input;
  static constexpr int ROWS = Shape::ROWS, COLS = Shape::COLS;
  float sum[ROWS][COLS];

  FASTGEMM_DEVICE void clear() {
#pragma unroll
    for (int m = 0; m < ROWS; ++m)
#pragma unroll
      for (int c = 0; c < COLS; ++c) sum[m][c] = 0;
  }

  // Adds the products of one step's whole chunks; k: of this lane.
  FASTGEMM_DEVICE void multiply(const GemvReads<Config>& reads, int k) {
    typename GemvReads<Config>::ReadB b[Shape::READS];
    reads.start_b(b, k);
#pragma unroll
    for (int s = 0; s < Config::NUM_STAGES; ++s) {
      float av[ROWS][CHUNK_ELEMENTS], bv[CHUNK_ELEMENTS];
#pragma unroll
      for (int m = 0; m < ROWS; ++m) unpack<Input>(reads.read_a(m, k + s * Shape::STAGE_K), av[m]);
#pragma unroll
      for (int i = 0; i < COLS; ++i) {
        unpack<Input>(b[s * COLS + i].finish(), bv);
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

  // Adds the products of the last k, one a lane.
  FASTGEMM_DEVICE void multiply_tail(const GemvReads<Config>& reads, int lane_k) {
#pragma unroll 1
    for (int k = reads.tail() + lane_k; k < reads.k_end; k += Shape::LANES_K) {
      float av[ROWS], bv[COLS];
#pragma unroll
      for (int m = 0; m < ROWS; ++m)
        av[m] = m < reads.rows ? element(reads.a + m * reads.a_m_stride + k * reads.a_k_stride) : 0;
#pragma unroll
      for (int c = 0; c < COLS; ++c)
        bv[c] = c < reads.cols ? element(reads.b + c * reads.b_n_stride + k * reads.b_k_stride) : 0;
#pragma unroll
      for (int m = 0; m < ROWS; ++m)
#pragma unroll
        for (int c = 0; c < COLS; ++c) sum[m][c] += av[m] * bv[c];
    }
  }

  // Writes the warp's sums to its [ROWS][BLOCK_N] floats in shared memory; `col`: of this lane.
  FASTGEMM_DEVICE void store(u32 shared, int col, int lane) {
#pragma unroll
    for (int m = 0; m < ROWS; ++m)
#pragma unroll
      for (int c = 0; c < COLS; ++c) {
#pragma unroll
        for (int mask = Shape::LANES_N; mask < WARP_THREADS; mask *= 2)
          sum[m][c] += ptx::shfl_bfly(sum[m][c], mask);
        if (Shape::lane_k(lane) == 0)
          ptx::st_shared_f32(shared + (m * Config::BLOCK_N + col + c) * 4, sum[m][c]);
      }
  }

 private:
  FASTGEMM_DEVICE static float element(const u16* p) {
    return ptx::to_float(Input{}, ptx::ld_global(p));
  }
};

// mma.m16n8k16 with 16 columns of B as its rows and eight rows of A as its columns, fragments
// straight from global memory. The instruction wants of a lane the pairs (2 t, 2 t + 1) and
// (2 t + 8, 2 t + 9) of 16 k, t = lane % 4. Sums do not care which k is called which, as long as
// both operands agree: of its eight k, a lane gives the first four to one mma and the others to the
// next.
template <class Config>
struct TensorCoreSums {
  using Shape = GemvShape<Config>;
  using Input = typename Config::Input;
  static constexpr int TILES = Shape::ROWS / 8;
  float sum[TILES][4];

  FASTGEMM_DEVICE void clear() {
#pragma unroll
    for (int j = 0; j < TILES; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sum[j][e] = 0;
  }

  FASTGEMM_DEVICE void multiply(const GemvReads<Config>& reads, int k) {
    typename GemvReads<Config>::ReadB b[Shape::READS];
    reads.start_b(b, k);
    const int row = ptx::thread_index() % WARP_THREADS / Shape::LANES_K;
#pragma unroll
    for (int s = 0; s < Config::NUM_STAGES; ++s) {
      const Chunk upper = b[2 * s].finish(), lower = b[2 * s + 1].finish();
#pragma unroll
      for (int j = 0; j < TILES; ++j)
        multiply_chunks(sum[j], upper, lower, reads.read_a(8 * j + row, k + s * Shape::STAGE_K));
    }
  }

  // The lanes of the first k read what is left; those behind read zeros.
  FASTGEMM_DEVICE void multiply_tail(const GemvReads<Config>& reads, int lane_k) {
    const int k = reads.tail() + lane_k * CHUNK_ELEMENTS, valid = reads.k_end - k;
    if (reads.tail() == reads.k_end) return;
    const int row = ptx::thread_index() % WARP_THREADS / Shape::LANES_K;
    const u16* b = reads.b + k * reads.b_k_stride;
    const Chunk upper = load_chunk<2>(b, reads.b_k_stride, reads.cols > 0 ? valid : 0);
    const Chunk lower =
        load_chunk<2>(b + 8 * reads.b_n_stride, reads.b_k_stride, reads.cols > 8 ? valid : 0);
#pragma unroll
    for (int j = 0; j < TILES; ++j) {
      const int m = 8 * j + row;
      multiply_chunks(sum[j], upper, lower,
                      load_chunk<2>(reads.a + m * reads.a_m_stride + k * reads.a_k_stride,
                                    reads.a_k_stride, m < reads.rows ? valid : 0));
    }
  }

  FASTGEMM_DEVICE void store(u32 shared, int col, int lane) const {
#pragma unroll
    for (int j = 0; j < TILES; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int m = 8 * j + lane % 4 * 2 + e % 2;
        ptx::st_shared_f32(shared + (m * Config::BLOCK_N + col + e / 2 * 8) * 4, sum[j][e]);
      }
  }

 private:
  FASTGEMM_DEVICE static void multiply_chunks(float (&d)[4], const Chunk& upper, const Chunk& lower,
                                              const Chunk& a) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const u32 rows[4] = {upper.word[i], lower.word[i], upper.word[i + 1], lower.word[i + 1]};
      ptx::mma_m16n8k16(Input{}, d, rows, a.word[i], a.word[i + 1]);
    }
  }
};

template <class Config, bool TENSOR = GemvShape<Config>::TENSOR>
struct GemvSums {
  using Type = CudaCoreSums<Config>;
};
template <class Config>
struct GemvSums<Config, true> {
  using Type = TensorCoreSums<Config>;
};

}  // namespace fastgemm
