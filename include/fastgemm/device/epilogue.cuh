// Epilogue: D = e(alpha * accumulators) + beta * C, rounded once, from registers to global memory;
// e is the kernel's fused epilogue, if it has one.
#pragma once

#include "fastgemm/device/config.cuh"
#include "fastgemm/device/epilogue_operands.cuh"
#include "fastgemm/device/fused_tile.cuh"
#include "fastgemm/device/params.cuh"
#include "fastgemm/device/ptx/barrier.cuh"
#include "fastgemm/device/ptx/convert.cuh"
#include "fastgemm/device/ptx/convert8.cuh"
#include "fastgemm/device/ptx/global.cuh"
#include "fastgemm/device/ptx/shared.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/raster.cuh"

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
  using Epilogue = typename Config::Epilogue;
  const Bits* c;
  Bits* d;
  i64 c_m_stride, c_n_stride, d_m_stride, d_n_stride;
  int rows_left, cols_left;
  float alpha, beta;
  Epilogue epilogue;

  // Of the elements from (m0, n0) of matrix `batch` on, of which rows x cols exist.
  FASTGEMM_DEVICE OutputTile(const GemmParams& p, i64 batch, i64 m0, i64 n0, i64 rows, i64 cols)
      : c_m_stride(p.c_m_stride),
        c_n_stride(p.c_n_stride),
        d_m_stride(p.d_m_stride),
        d_n_stride(p.d_n_stride),
        rows_left(static_cast<int>(min_of<i64>(rows, 1 << 30))),
        cols_left(static_cast<int>(min_of<i64>(cols, 1 << 30))),
        alpha(p.alpha),
        beta(p.beta),
        epilogue(epilogue_at<Epilogue>(p, {batch, m0, n0})) {
    c = static_cast<const Bits*>(p.c) + batch * p.c_batch_stride + m0 * c_m_stride +
        n0 * c_n_stride;
    d = static_cast<Bits*>(p.d) + batch * p.d_batch_stride + m0 * d_m_stride + n0 * d_n_stride;
  }
  FASTGEMM_DEVICE OutputTile(const GemmParams& p, const TileIndex& index)
      : OutputTile(p, index.batch, i64(index.m) * Config::BLOCK_M, i64(index.n) * Config::BLOCK_N,
                   p.m - i64(index.m) * Config::BLOCK_M, p.n - i64(index.n) * Config::BLOCK_N) {}

  // Finishes COUNT neighbouring sums of one row and stores them, as far as they exist.
  template <int COUNT>
  FASTGEMM_DEVICE void finish(int row, int col, const float (&sum)[COUNT]) const {
    const int valid = row < rows_left ? cols_left - col : 0;
    if (valid <= 0) return;
    // Elements that are moved together lie side by side, and constants spare multiplications.
    const i64 c_step = COUNT > 1 ? 1 : c_n_stride, d_step = COUNT > 1 ? 1 : d_n_stride;
    RowVector<Element, COUNT> addend, result;
    if constexpr (Config::HAS_C) addend.load(c + row * c_m_stride + col * c_step, c_step, valid);
    float fused[COUNT];
    if constexpr (Epilogue::ACTIVE) {
#pragma unroll
      for (int i = 0; i < COUNT; ++i) fused[i] = alpha * sum[i];
      epilogue.template apply<Neighbours<COUNT>>(fused, row, col, valid);
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      float value = Epilogue::ACTIVE ? fused[i] : alpha * sum[i];
      if constexpr (Config::HAS_C) value += beta * ptx::to_float(Element{}, addend.bits[i]);
      result.bits[i] = ptx::from_float(Element{}, value);
    }
    result.store(d + row * d_m_stride + col * d_step, d_step, valid);
  }
};

// A warp's accumulators are 16 x 16 tiles of eight floats a lane, [TILES_M][TILES_N]; Mma says
// which. Tile row i begins i * ROW_STEP rows below the warp's first (16 with mma.sync; 64 with
// WGMMA, where four warps interleave).

// Straight from registers: a lane holds pairs of columns, so that a store instruction of the warp
// touches eight rows with 16 or 32 bytes each. Simple, and slower than the staged form wherever
// stores matter.
template <class Mma, int ROW_STEP, class Config, int TILES_M, int TILES_N>
FASTGEMM_DEVICE void epilogue_direct(const float (&accumulator)[TILES_M][TILES_N][8],
                                     const OutputTile<Config>& out, int first_row, int first_col) {
  constexpr int COUNT =
      sizeof(typename Config::Output::Bits) == 1 ? 1 : min_of(Config::D_VECTOR, 2);
  const int lane = ptx::thread_index() % WARP_THREADS;
#pragma unroll
  for (int i = 0; i < TILES_M; ++i)
#pragma unroll
    for (int j = 0; j < TILES_N; ++j)
#pragma unroll
      for (int e = 0; e < 8; e += COUNT) {
        float sum[COUNT];
#pragma unroll
        for (int x = 0; x < COUNT; ++x) sum[x] = accumulator[i][j][e + x];
        out.template finish<COUNT>(first_row + i * ROW_STEP + Mma::row(lane, e / 2),
                                   first_col + j * 16 + Mma::col(lane, e / 2) + e % 2, sum);
      }
}

// A warp's staging buffer in shared memory: a panel of its tile as float32. Rows are padded by 32
// bytes: eight lanes that write one column of eight rows then hit different banks.
template <int ROWS, int COLS>
struct Panel {
  static constexpr int TILES_M = ROWS / 16;
  static constexpr int TILES_N = COLS / 16;
  static constexpr int PITCH = COLS + 8;
  static constexpr int BYTES = ROWS * PITCH * 4;
};

// Stores the first `cols` (a multiple of 16) columns of a panel where D takes single elements only.
// Lanes lie along the contiguous index of D (with the operands swapped that counts rows); a lane
// keeps its place there and walks along the other index: little is left to compute for an element.
template <class Panel, class Config>
FASTGEMM_DEVICE void store_elements(const OutputTile<Config>& out, int first_row, int first_col,
                                    int cols, u32 panel) {
  constexpr int ROWS = Panel::TILES_M * 16;
  const int length = Config::SWAP_AB ? ROWS : cols;
  const int lanes = length % WARP_THREADS == 0 ? WARP_THREADS : 16;
  const int step = WARP_THREADS / lanes;
  const int lane = ptx::thread_index() % WARP_THREADS;
  for (int along = lane % lanes; along < length; along += lanes)
#pragma unroll 1
    for (int across = lane / lanes; across < ROWS * cols / length; across += 4 * step) {
      float sum[4][1];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = Config::SWAP_AB ? along : across + i * step;
        const int col = Config::SWAP_AB ? across + i * step : along;
        sum[i][0] = ptx::ld_shared_f32(panel + (row * Panel::PITCH + col) * 4);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = Config::SWAP_AB ? along : across + i * step;
        const int col = Config::SWAP_AB ? across + i * step : along;
        out.template finish<1>(first_row + row, first_col + col, sum[i]);
      }
    }
}

// Writes the accumulators' panel from 16 x 16 tile (tile_m, tile_n) on into shared memory. The tile
// is known at run time only and registers cannot be indexed: every panel has its own stores here,
// behind a branch.
template <class Panel, class Mma, int TILES_M, int TILES_N>
FASTGEMM_DEVICE void write_panel(const float (&accumulator)[TILES_M][TILES_N][8], int tile_m,
                                 int tile_n, u32 panel) {
  const int lane = ptx::thread_index() % WARP_THREADS;
#pragma unroll
  for (int m = 0; m < TILES_M; m += Panel::TILES_M)
#pragma unroll
    for (int n = 0; n < TILES_N; n += Panel::TILES_N)
      if (m == tile_m && n == tile_n)
#pragma unroll
        for (int i = 0; i < Panel::TILES_M; ++i)
#pragma unroll
          for (int j = 0; j < min_of(Panel::TILES_N, TILES_N - n); ++j)
#pragma unroll
            for (int pair = 0; pair < 4; ++pair) {
              const float* sum = accumulator[m + i][n + j] + 2 * pair;
              const int row = i * 16 + Mma::row(lane, pair), col = j * 16 + Mma::col(lane, pair);
              ptx::st_shared_v2_f32(panel + (row * Panel::PITCH + col) * 4, sum[0], sum[1]);
            }
}

// Stores the first `cols` (a multiple of 16) columns of a panel, vectors of D_VECTOR side by side.
template <class Panel, class Config>
FASTGEMM_DEVICE void store_vectors(const OutputTile<Config>& out, int first_row, int first_col,
                                   int cols, u32 panel) {
  constexpr int COUNT = Config::D_VECTOR;
  const int vectors = cols / COUNT;  // of a row
#pragma unroll 1
  for (int v = ptx::thread_index() % WARP_THREADS; v < Panel::TILES_M * 16 * vectors;
       v += WARP_THREADS) {
    const int row = v / vectors, col = v % vectors * COUNT;
    float sum[COUNT];
    const u32 address = panel + (row * Panel::PITCH + col) * 4;
#pragma unroll
    for (int i = 0; i < COUNT; i += 4) {
      const Chunk c = ptx::ld_shared_v4(address + 4 * i);
#pragma unroll
      for (int x = 0; x < 4; ++x) sum[i + x] = __uint_as_float(c.word[x]);
    }
    out.template finish<COUNT>(first_row + row, first_col + col, sum);
  }
}

// Through shared memory, panel by panel, so that a store instruction writes whole rows. Each warp
// has its own `buffer` and works alone. All loops stay loops but that over the registers: unrolled,
// they would dominate code size and compile time.
template <class Panel, class Mma, int ROW_STEP, class Config, int TILES_M, int TILES_N>
FASTGEMM_DEVICE void epilogue_staged(const float (&accumulator)[TILES_M][TILES_N][8],
                                     const OutputTile<Config>& out, int first_row, int first_col,
                                     u32 buffer) {
  static_assert(TILES_M % Panel::TILES_M == 0 && (Panel::TILES_M == 1 || ROW_STEP == 16),
                "a panel's rows lie one below the other");
#pragma unroll 1
  for (int tile_m = 0; tile_m < TILES_M; tile_m += Panel::TILES_M)
#pragma unroll 1
    for (int tile_n = 0; tile_n < TILES_N; tile_n += Panel::TILES_N) {
      ptx::bar_warp_sync();  // the panel before has been read
      write_panel<Panel, Mma>(accumulator, tile_m, tile_n, buffer);
      ptx::bar_warp_sync();
      const int row = first_row + tile_m * ROW_STEP, col = first_col + tile_n * 16;
      // The last may be narrower; where it is not, a constant spares divisions.
      const int cols =
          16 * (TILES_N % Panel::TILES_N == 0 ? Panel::TILES_N
                                              : min_of(Panel::TILES_N, TILES_N - tile_n));
      if constexpr (Config::D_VECTOR == 1)
        store_elements<Panel>(out, row, col, cols, buffer);
      else
        store_vectors<Panel>(out, row, col, cols, buffer);
    }
}

}  // namespace fastgemm
