// What follows from a Config: the generated struct of constants that every template here takes.
//
//   struct Config {
//     using Input = Bfloat16;   using Output = Bfloat16;      // A and B; C and D
//     static constexpr int FAMILY = 80;
//     static constexpr Major A_MAJOR = Major::K, B_MAJOR = Major::K;
//     static constexpr int BLOCK_M = 128, BLOCK_N = 128, BLOCK_K = 64, WARP_M = 64, WARP_N = 64;
//     static constexpr int NUM_STAGES = 4, RASTER_GROUP = 8;
//     static constexpr bool SWIZZLE = true, STAGED_STORES = true, HAS_C = false;
//     static constexpr bool SHIFT_A = false, SHIFT_B = false;
//     static constexpr int A_COPY_BYTES = 16, B_COPY_BYTES = 16, D_VECTOR = 8;
//     static constexpr Gate GATE = Gate::NONE;
//     using Epilogue = NoEpilogue;
//   };
#pragma once

#include "fastgemm/device/swizzle.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm {

// Along which index of the product gates and ups alternate (gated_tile.cuh).
enum class Gate { NONE, M, N };

// An operand's tile of one k-tile in shared memory. "Outer" is M for A and N for B; the contiguous
// index of global memory stays the contiguous one here, so that every global read is a run of
// 16-byte chunks. Rows that begin anywhere (SHIFTED, shifted_rows.cuh) take one chunk more: an odd
// number, which spreads them over the banks without a swizzle.
template <int OUTER, int DEPTH_, Major MAJOR_, bool SWIZZLE, bool SHIFTED_>
struct OperandTile {
  static constexpr Major MAJOR = MAJOR_;
  static constexpr bool SHIFTED = SHIFTED_;
  static constexpr int DEPTH = DEPTH_;
  static constexpr int ROWS = MAJOR == Major::K ? OUTER : DEPTH;
  static constexpr int COLS = MAJOR == Major::K ? DEPTH : OUTER;
  using Layout = SharedLayout<ROWS, COLS + (SHIFTED ? CHUNK_ELEMENTS : 0), SWIZZLE && !SHIFTED>;
};

template <class Config>
struct Derived {
  static constexpr int WARPS_M = Config::BLOCK_M / Config::WARP_M;
  static constexpr int WARPS_N = Config::BLOCK_N / Config::WARP_N;
  static constexpr int WARPS = WARPS_M * WARPS_N;
  static constexpr int THREADS = WARPS * WARP_THREADS;

  // A warp multiplies 16 x 16 x 16 at a time (the mma tile of mma_*.cuh).
  static constexpr int MMA = 16;
  static constexpr int MMA_TILES_M = Config::WARP_M / MMA;
  static constexpr int MMA_TILES_N = Config::WARP_N / MMA;
  static constexpr int K_SLICES = Config::BLOCK_K / MMA;

  using ATile = OperandTile<Config::BLOCK_M, Config::BLOCK_K, Config::A_MAJOR, Config::SWIZZLE,
                            Config::SHIFT_A>;
  using BTile = OperandTile<Config::BLOCK_N, Config::BLOCK_K, Config::B_MAJOR, Config::SWIZZLE,
                            Config::SHIFT_B>;
  static constexpr int STAGE_BYTES = ATile::Layout::BYTES + BTile::Layout::BYTES;
  static constexpr int RING_BYTES = STAGE_BYTES * Config::NUM_STAGES;

  static_assert(Config::BLOCK_M % Config::WARP_M == 0 && Config::BLOCK_N % Config::WARP_N == 0,
                "a block tile is whole warp tiles");
  static_assert(Config::WARP_M % MMA == 0 && Config::WARP_N % MMA == 0,
                "a warp tile is whole mma tiles");
  static_assert(Config::BLOCK_K % (2 * MMA) == 0,
                "fragments are double-buffered over pairs of k-slices");
};

}  // namespace fastgemm
