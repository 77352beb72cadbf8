// Gated epilogues: two columns of the product, gate and up, become one column of D.
#pragma once

#include "fastgemm/device/epilogue.cuh"
#include "fastgemm/device/mma_sm80.cuh"
#include "fastgemm/device/params.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/raster.cuh"

namespace fastgemm {

// However gate and up lie in memory, a block tile has them in turns of eight columns (with the
// operands swapped: of eight rows), which is how the TMA is told to fetch them:
//
//   column of the tile   0..7      8..15   16..23     24..31
//                        gate 0-7  up 0-7  gate 8-15  up 8-15
//
// So a lane that holds an element of a gate holds its up too, in the same place of the other half
// of a 16 x 16 tile.

// D with what the gates left: nothing remains to be fused, and alpha has been applied.
template <class Config>
struct GatedConfig : Config {
  using Epilogue = NoEpilogue;
};

// A tile of D of 8 rows x 32 columns in eight floats a lane: what two 16 x 16 tiles beside each
// other leave whose rows were gated.
struct GatedRows {
  FASTGEMM_DEVICE static int row(int lane, int) { return lane / 4; }
  FASTGEMM_DEVICE static int col(int lane, int pair) { return 2 * (lane % 4) + 8 * pair; }
};

// A warpgroup's part of D, from its block tile's sums.
template <class Config>
struct GatedTile {
  static constexpr bool BY_ROWS = Config::GATE == Gate::M;
  static constexpr int ROWS = BY_ROWS ? 2 : 1, COLS = BY_ROWS ? 1 : 2;  // that one of D is made of
  using Epilogue = typename Config::Epilogue;
  i64 m0, n0;  // of the block tile in D
  Epilogue epilogue;
  int first_row, first_col;  // of this warp in the tile of D
  int rows_left, cols_left;  // of the tile of D, those that exist
  float alpha;

  // The warpgroup's sums begin at (tile_row, tile_col) of the block tile and are `tile_cols` wide.
  FASTGEMM_DEVICE GatedTile(const GemmParams& p, const TileIndex& index, int tile_row, int tile_col,
                            int tile_cols)
      : m0(i64(index.m) * (Config::BLOCK_M / ROWS)),
        n0(i64(index.n) * (Config::BLOCK_N / COLS)),
        epilogue(epilogue_at<Epilogue>(p, {index.batch, m0, n0})),
        first_row((tile_row + ptx::thread_index() / WARP_THREADS % 4 * 16) / ROWS),
        first_col(tile_col / COLS),
        rows_left(
            static_cast<int>(min_of<i64>(p.m / ROWS - m0, (tile_row + Config::WARP_M) / ROWS))),
        cols_left(static_cast<int>(min_of<i64>(p.n / COLS - n0, (tile_col + tile_cols) / COLS))),
        alpha(p.alpha) {}

  // Two neighbours of D at (row, col) of this warp's part of it.
  FASTGEMM_DEVICE void gate(const float* gates, const float* ups, int row, int col,
                            float* result) const {
    float value[2] = {alpha * gates[0], alpha * gates[1]};
    const float up[2] = {alpha * ups[0], alpha * ups[1]};
    const int m = first_row + row, n = first_col + col;
    epilogue.template apply<Neighbours<2>>(value, up, min_of(m, rows_left - 1),
                                           min_of(n, (cols_left - 1) & ~1),
                                           m < rows_left ? cols_left - n : 0);
    result[0] = value[0];
    result[1] = value[1];
  }

  // Two 16 x 16 tiles beside each other, of which the left one begins at column `col` of the tile,
  // into one tile of D: of 16 x 16, or by rows of GatedRows.
  FASTGEMM_DEVICE void gate(const float (&left)[8], const float (&right)[8], int row, int col,
                            float (&result)[8]) const {
    const int lane = ptx::thread_index() % WARP_THREADS;
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      const float (&tile)[8] = pair < 2 ? left : right;
      if constexpr (BY_ROWS) {
        const int at = pair % 2 * 4;  // rows 0-7 of the left, then of the right half; below them up
        gate(tile + at, tile + at + 2, row / ROWS + GatedRows::row(lane, pair),
             col + GatedRows::col(lane, pair), result + 2 * pair);
      } else {
        const int at = pair % 2 * 2;  // the left half, rows 0-7 and 8-15; in the right one up
        gate(tile + at, tile + at + 4, row + M16n8Accumulators::row(lane, pair),
             col / COLS + M16n8Accumulators::col(lane, pair), result + 2 * pair);
      }
    }
  }
};

// Gates all of a warpgroup's sums. The loop over chunks of tiles stays a loop, see take_tiles();
// each chunk leaves what it became where it was, in half of the place.
template <class Config, int BLOCKS_M, int TILES_N>
FASTGEMM_DEVICE void gate_sums(const GatedTile<Config>& gated, float (&sum)[BLOCKS_M][TILES_N][8],
                               float (&result)[BLOCKS_M][(TILES_N + 1) / 2][8]) {
  constexpr int CHUNK = TILES_N % 8 == 0 ? 8 : TILES_N % 4 == 0 ? 4 : min_of(TILES_N, 2);
  constexpr int HALF = (CHUNK + 1) / 2;
  static_assert(TILES_N % CHUNK == 0, "tiles are gated in pairs, or there is one");
#pragma unroll
  for (int i = 0; i < BLOCKS_M; ++i) {
#pragma unroll 1
    for (int j = 0; j < TILES_N; j += CHUNK) {
      float done[HALF][8];
#pragma unroll
      for (int t = 0; t < HALF; ++t)
        gated.gate(sum[i][2 * t], sum[i][min_of(2 * t + 1, CHUNK - 1)], i * 64, (j + 2 * t) * 16,
                   done[t]);
      take_tiles<CHUNK>(sum[i]);
#pragma unroll
      for (int t = 0; t < HALF; ++t)
#pragma unroll
        for (int e = 0; e < 8; ++e) sum[i][TILES_N - CHUNK + t][e] = done[t][e];
    }
#pragma unroll
    for (int t = 0; t < (TILES_N + 1) / 2; ++t)
#pragma unroll
      for (int e = 0; e < 8; ++e) result[i][t][e] = sum[i][t / HALF * CHUNK + t % HALF][e];
  }
}

// Stores what was gated by rows, straight from registers: a lane's elements lie across the rows of
// D as it is asked for. Little, where swapped operands pay: a few tokens.
template <class Config, int BLOCKS_M, int TILES>
FASTGEMM_DEVICE void store_gated_rows(const OutputTile<Config>& out, int first_row, int first_col,
                                      const float (&result)[BLOCKS_M][TILES][8]) {
  const int lane = ptx::thread_index() % WARP_THREADS;
#pragma unroll
  for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
    for (int j = 0; j < TILES; ++j)
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float one[1] = {result[i][j][e]};
        out.template finish<1>(first_row + i * 32 + GatedRows::row(lane, e / 2),
                               first_col + j * 32 + GatedRows::col(lane, e / 2) + e % 2, one);
      }
}

}  // namespace fastgemm
