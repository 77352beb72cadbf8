// Epilogue: D = alpha * accumulators + beta * C, rounded once, from registers to global memory.
#pragma once

#include "fastgemm/device/config.cuh"
#include "fastgemm/device/params.cuh"
#include "fastgemm/device/ptx/barrier.cuh"
#include "fastgemm/device/ptx/convert.cuh"
#include "fastgemm/device/ptx/global.cuh"
#include "fastgemm/device/ptx/shared.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/raster.cuh"
#include "fastgemm/device/warp_tile.cuh"

namespace fastgemm {

// COUNT neighbouring elements of a row, moved with the widest access where they lie side by side.
template <class Element, int COUNT>
struct RowVector {
  using Bits = typename Element::Bits;
  static constexpr int BYTES = COUNT * static_cast<int>(sizeof(Bits));
  union {
    Bits bits[COUNT];
    u32 words[BYTES < 4 ? 1 : BYTES / 4];
  };

  FASTGEMM_DEVICE void load(const Bits* p, i64 stride, int valid) {
    if constexpr (COUNT > 1) {
      if (valid >= COUNT) {
        ptx::ld_global_words<BYTES / 4>(words, p);
        return;
      }
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) bits[i] = i < valid ? ptx::ld_global(p + i * stride) : Bits(0);
  }
  FASTGEMM_DEVICE void store(Bits* p, i64 stride, int valid) const {
    if constexpr (COUNT > 1) {
      if (valid >= COUNT) {
        ptx::st_global_words<BYTES / 4>(p, words);
        return;
      }
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
      if (i < valid) ptx::st_global(p + i * stride, bits[i]);
  }
};

// Where a CTA's tile of C and D lies, and how much of it exists.
template <class Config>
struct OutputTile {
  using Element = typename Config::Output;
  using Bits = typename Element::Bits;
  const Bits* c;
  Bits* d;
  i64 c_m_stride, c_n_stride, d_m_stride, d_n_stride;
  int rows_left, cols_left;
  float alpha, beta;

  FASTGEMM_DEVICE OutputTile(const GemmParams& p, const TileIndex& index)
      : c_m_stride(p.c_m_stride),
        c_n_stride(p.c_n_stride),
        d_m_stride(p.d_m_stride),
        d_n_stride(p.d_n_stride),
        alpha(p.alpha),
        beta(p.beta) {
    const i64 m0 = i64(index.m) * Config::BLOCK_M, n0 = i64(index.n) * Config::BLOCK_N;
    c = static_cast<const Bits*>(p.c) + index.batch * p.c_batch_stride + m0 * c_m_stride +
        n0 * c_n_stride;
    d = static_cast<Bits*>(p.d) + index.batch * p.d_batch_stride + m0 * d_m_stride +
        n0 * d_n_stride;
    rows_left = static_cast<int>(min_of<i64>(p.m - m0, Config::BLOCK_M));
    cols_left = static_cast<int>(min_of<i64>(p.n - n0, Config::BLOCK_N));
  }

  // Finishes COUNT neighbouring sums of one row and stores them, as far as they exist.
  template <int COUNT>
  FASTGEMM_DEVICE void finish(int row, int col, const float (&sum)[COUNT]) const {
    const int valid = row < rows_left ? cols_left - col : 0;
    if (valid <= 0) return;
    RowVector<Element, COUNT> addend, result;
    if constexpr (Config::HAS_C)
      addend.load(c + row * c_m_stride + col * c_n_stride, c_n_stride, valid);
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      float value = alpha * sum[i];
      if constexpr (Config::HAS_C) value += beta * ptx::to_float(Element{}, addend.bits[i]);
      result.bits[i] = ptx::from_float(Element{}, value);
    }
    result.store(d + row * d_m_stride + col * d_n_stride, d_n_stride, valid);
  }
};

// Straight from registers: a lane holds pairs of columns, so that a store instruction of the warp
// touches eight rows with 16 or 32 bytes each. Simple, and slower than the staged form wherever
// stores matter.
template <class Config>
FASTGEMM_DEVICE void epilogue_direct(const WarpTile<Config>& tile, const OutputTile<Config>& out) {
  using D = Derived<Config>;
  using Mma = typename WarpTile<Config>::Mma;
  constexpr int COUNT = min_of(Config::D_VECTOR, 2);
  const int lane = ptx::thread_index() % WARP_THREADS;
#pragma unroll
  for (int i = 0; i < D::MMA_TILES_M; ++i)
#pragma unroll
    for (int j = 0; j < D::MMA_TILES_N; ++j)
#pragma unroll
      for (int e = 0; e < 8; e += COUNT) {
        float sum[COUNT];
#pragma unroll
        for (int x = 0; x < COUNT; ++x) sum[x] = tile.accumulator[i][j][e + x];
        out.template finish<COUNT>(tile.first_row() + i * D::MMA + Mma::row(lane, e / 2),
                                   tile.first_col() + j * D::MMA + Mma::col(lane, e / 2) + e % 2,
                                   sum);
      }
}

// The staging buffer of a warp: STAGE_ROWS rows of its tile as float32, in what was the ring. Rows
// are padded by 32 bytes: eight lanes that write one column of eight rows then hit different banks.
template <class Config>
struct StagingBuffer {
  using D = Derived<Config>;
  static constexpr int PITCH = Config::WARP_N + 8;
  static constexpr int bytes(int rows) { return D::WARPS * rows * PITCH * 4; }
  static constexpr int rows_that_fit(int rows) {
    return rows == D::MMA || bytes(rows) <= D::RING_BYTES ? rows : rows_that_fit(rows - D::MMA);
  }
  static constexpr int passes() {
    int n = 1;
    while (Config::WARP_M % n != 0 || Config::WARP_M / n % D::MMA != 0 ||
           Config::WARP_M / n > rows_that_fit(Config::WARP_M))
      ++n;
    return n;
  }
  static constexpr int PASSES = passes();
  static constexpr int ROWS = Config::WARP_M / PASSES;
  static constexpr int BYTES = bytes(ROWS);
};

// Through shared memory, so that a store instruction writes whole rows. Each warp has its own
// buffer and works alone. The loop over a buffer's vectors stays a loop: unrolled, it would
// dominate code size and compile time.
template <class Config>
FASTGEMM_DEVICE void epilogue_staged(const WarpTile<Config>& tile, const OutputTile<Config>& out,
                                     u32 shared) {
  using D = Derived<Config>;
  using Mma = typename WarpTile<Config>::Mma;
  using Buffer = StagingBuffer<Config>;
  constexpr int COUNT = Config::D_VECTOR;
  constexpr int VECTORS = Config::WARP_N / COUNT;  // of a row
  const int lane = ptx::thread_index() % WARP_THREADS;
  const u32 buffer = shared + tile.warp() * Buffer::ROWS * Buffer::PITCH * 4;

#pragma unroll
  for (int pass = 0; pass < Buffer::PASSES; ++pass) {
    constexpr int TILES = Buffer::ROWS / D::MMA;
#pragma unroll
    for (int i = 0; i < TILES; ++i)
#pragma unroll
      for (int j = 0; j < D::MMA_TILES_N; ++j)
#pragma unroll
        for (int pair = 0; pair < 4; ++pair) {
          const float* sum = tile.accumulator[pass * TILES + i][j] + 2 * pair;
          const int row = i * D::MMA + Mma::row(lane, pair),
                    col = j * D::MMA + Mma::col(lane, pair);
          ptx::st_shared_v2_f32(buffer + (row * Buffer::PITCH + col) * 4, sum[0], sum[1]);
        }
    ptx::bar_warp_sync();
#pragma unroll 1
    for (int v = lane; v < Buffer::ROWS * VECTORS; v += WARP_THREADS) {
      const int row = v / VECTORS, col = v % VECTORS * COUNT;
      float sum[COUNT];
      const u32 address = buffer + (row * Buffer::PITCH + col) * 4;
      if constexpr (COUNT % 4 == 0) {
#pragma unroll
        for (int i = 0; i < COUNT; i += 4) {
          const Chunk c = ptx::ld_shared_v4(address + 4 * i);
#pragma unroll
          for (int x = 0; x < 4; ++x) sum[i + x] = __uint_as_float(c.word[x]);
        }
      } else {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) sum[i] = ptx::ld_shared_f32(address + 4 * i);
      }
      out.template finish<COUNT>(tile.first_row() + pass * Buffer::ROWS + row,
                                 tile.first_col() + col, sum);
    }
    if (pass + 1 < Buffer::PASSES) ptx::bar_warp_sync();  // read before it is overwritten
  }
}

}  // namespace fastgemm
