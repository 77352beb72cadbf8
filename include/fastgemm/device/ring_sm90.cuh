// The sm90 ring: shapes and places of its stages and barriers, and the walk around it.
#pragma once

#include "fastgemm/device/config.cuh"
#include "fastgemm/device/ptx/mbarrier.cuh"
#include "fastgemm/device/swizzle.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm {

constexpr int WARPGROUP_THREADS = 128;

// One operand's k-tile as the TMA writes it and WGMMA reads it: atoms of 8 rows x ROW_BYTES, which
// hold SPAN elements. In rows of 128 bytes (the 128-byte swizzle) the 16-byte chunks of row r are
// permuted by XOR with r; of 64 bytes with r / 2, of 32 bytes with r / 4, always so that a column
// of chunks meets all banks; a row of 16 bytes is one chunk (no swizzle).
//
//   K-major    columns of OUTER rows x SPAN of K, one behind the other along K
//   MN-major   boxes of SPAN (m or n) x DEPTH rows of K, one behind the other along m or n
//
// With SLICES > 1 the CTAs of a cluster share the tile: each fetches one slice of every box, and
// the TMA delivers it to all.
template <int OUTER_, int DEPTH_, Major MAJOR_, int SLICES_, int ROW_BYTES_>
struct TmaTile {
  static constexpr int OUTER = OUTER_;
  static constexpr int DEPTH = DEPTH_;
  static constexpr Major MAJOR = MAJOR_;
  static constexpr int SLICES = SLICES_;
  static constexpr int ROW_BYTES = ROW_BYTES_;
  static constexpr int SPAN = ROW_BYTES / 2;
  static constexpr int COLUMNS = MAJOR == Major::K ? DEPTH / SPAN : 1;
  static constexpr int BOXES = MAJOR == Major::K ? 1 : OUTER / SPAN;
  static constexpr int ROWS = MAJOR == Major::K ? OUTER : DEPTH;  // of a column, of a box
  static constexpr int COLUMN_BYTES = ROWS * ROW_BYTES;
  static constexpr int BYTES = OUTER * DEPTH * 2;

  // Bytes from the start of the tile to 16-byte chunk `chunk` of row `row`: of its outer or, of
  // MN-major, of its depth.
  FASTGEMM_DEVICE static int offset(int row, int chunk) {
    using Layout = SharedLayout<ROWS, SPAN, true>;
    return chunk / Layout::CHUNKS * COLUMN_BYTES + Layout::offset(row, chunk % Layout::CHUNKS);
  }

  // One copy: of several columns a slice is some of them, of one it is some of its rows.
  static constexpr bool SLICE_COLUMNS = COLUMNS > 1 && SLICES > 1;
  static constexpr int COPY_COLUMNS = SLICE_COLUMNS ? COLUMNS / SLICES : COLUMNS;
  static constexpr int COPY_ROWS = SLICE_COLUMNS ? ROWS : ROWS / SLICES;
  static constexpr int COPY_BYTES = COPY_COLUMNS * COPY_ROWS * ROW_BYTES;
  static_assert(DEPTH % SPAN == 0 && DEPTH % 16 == 0, "a k-tile is whole swizzle atoms deep");
  static_assert(COPY_ROWS % 8 == 0 && COPY_ROWS <= 256, "a copy is whole atoms, 256 rows at most");
  static_assert(MAJOR == Major::K || OUTER % SPAN == 0, "MN-major boxes are SPAN wide");

  // Of a tile at the operand's edge, which has `present` of the OUTER: rows of one K-major copy,
  // whole atoms and as many in every slice, and bytes of all copies.
  FASTGEMM_DEVICE static int copy_rows(int present) {
    return ((SLICE_COLUMNS ? present : (present + SLICES - 1) / SLICES) + 7) / 8 * 8;
  }
  FASTGEMM_DEVICE static int bytes(int present) {
    return MAJOR == Major::MN ? (present + SPAN - 1) / SPAN * COLUMN_BYTES
                              : copy_rows(present) * (SLICE_COLUMNS ? 1 : SLICES) * DEPTH * 2;
  }
};

// A place in the ring. `lap` is the parity of the phase that a consumer waits for at `full`; the
// producer waits for the other one at `empty`, so that its first lap finds every stage free.
template <int STAGES>
struct RingPosition {
  int stage = 0;
  u32 lap = 0;
  FASTGEMM_DEVICE void advance() {
    if (++stage == STAGES) {
      stage = 0;
      lap ^= 1;
    }
  }
  FASTGEMM_DEVICE void advance(int steps) {
    const u32 ahead = stage + steps;
    stage = ahead % STAGES;
    lap ^= ahead / STAGES & 1;
  }
};

template <class Config>
struct RingSm90 {
  static constexpr int TILES = Config::CLUSTER_M * Config::CLUSTER_N;  // of a cluster
  static constexpr int CLUSTER = TILES * Config::CLUSTER_K;            // its CTAs
  // Warpgroups that share a block tile, and all that multiply: ping-pong, two take tiles in turns.
  static constexpr int TILE_CONSUMERS = Config::BLOCK_M / Config::WARP_M;
  static constexpr int CONSUMERS = TILE_CONSUMERS * (Config::PING_PONG ? 2 : 1);
  // Rows that begin anywhere are fetched by one warpgroup and straightened by others: as many as an
  // SM has registers for.
  static constexpr bool SHIFTS = Config::SHIFT_A || Config::SHIFT_B;
  static constexpr int PRODUCERS = SHIFTS ? 4 - CONSUMERS : 1;
  static constexpr int THREADS = (CONSUMERS + PRODUCERS) * WARPGROUP_THREADS;
  static constexpr int STRAIGHTENERS = (PRODUCERS - 1) * 4;  // warps
  static constexpr int STAGES = Config::NUM_STAGES;

  // CTAs above each other share B, CTAs beside each other share A.
  using A = TmaTile<Config::BLOCK_M, Config::BLOCK_K, Config::A_MAJOR,
                    Config::MULTICAST ? Config::CLUSTER_N : 1, Config::SWIZZLE_BYTES>;
  using B = TmaTile<Config::BLOCK_N, Config::BLOCK_K, Config::B_MAJOR,
                    Config::MULTICAST ? Config::CLUSTER_M : 1, Config::SWIZZLE_BYTES>;
  static constexpr int STAGE_BYTES = A::BYTES + B::BYTES;
  static_assert(STAGE_BYTES % 1024 == 0, "swizzle atoms of 128-byte rows are 1024-byte aligned");

  static constexpr int BYTES = STAGES * STAGE_BYTES;

  // Behind it, the ring of rows that begin anywhere (produce_shifted.cuh).
  using RawA = OperandTile<Config::BLOCK_M, Config::BLOCK_K, Config::A_MAJOR, false, true>;
  using RawB = OperandTile<Config::BLOCK_N, Config::BLOCK_K, Config::B_MAJOR, false, true>;
  static constexpr int RAW_A_BYTES = Config::SHIFT_A ? RawA::Layout::BYTES : 0;
  static constexpr int RAW_STAGE_BYTES = RAW_A_BYTES + (Config::SHIFT_B ? RawB::Layout::BYTES : 0);
  static constexpr int RAW_BYTES = (STAGES * RAW_STAGE_BYTES + 1023) / 1024 * 1024;

  // WGMMA reads 64 rows of A, and of a warpgroup that has fewer what lies behind: up to here.
  static constexpr int READ_BYTES =
      BYTES - B::BYTES + (64 - min_of(Config::WARP_M, 64)) * A::ROW_BYTES;

  static constexpr int BARRIER_BYTES = (SHIFTS ? 4 : 2) * STAGES * 8;

  u32 base;      // of the first stage
  u32 barriers;  // full[STAGES], empty[STAGES]; with shifted rows raw_full and raw_empty too

  FASTGEMM_DEVICE u32 a(int stage) const { return base + stage * STAGE_BYTES; }
  FASTGEMM_DEVICE u32 b(int stage) const { return a(stage) + A::BYTES; }
  FASTGEMM_DEVICE u32 raw_a(int stage) const { return base + BYTES + stage * RAW_STAGE_BYTES; }
  FASTGEMM_DEVICE u32 raw_b(int stage) const { return raw_a(stage) + RAW_A_BYTES; }
  FASTGEMM_DEVICE u32 full(int stage) const { return barriers + stage * 8; }
  FASTGEMM_DEVICE u32 empty(int stage) const { return barriers + (STAGES + stage) * 8; }
  FASTGEMM_DEVICE u32 raw_full(int stage) const { return barriers + (2 * STAGES + stage) * 8; }
  FASTGEMM_DEVICE u32 raw_empty(int stage) const { return barriers + (3 * STAGES + stage) * 8; }

  // full: the producer arrives once and announces the bytes, and with shifted rows each of the
  // warps that straighten them. empty: one lane of every warp that shares the block tile arrives,
  // in every CTA that receives what this CTA's producer sends.
  FASTGEMM_DEVICE void init_barriers() const {
    constexpr int RECEIVERS = Config::MULTICAST ? TILES : 1;
    for (int s = 0; s < STAGES; ++s) {
      ptx::mbarrier_init(full(s), SHIFTS ? 1 + STRAIGHTENERS : 1);
      ptx::mbarrier_init(empty(s), TILE_CONSUMERS * 4 * RECEIVERS);
      if constexpr (SHIFTS) {
        ptx::mbarrier_init(raw_full(s), WARPGROUP_THREADS / WARP_THREADS);
        ptx::mbarrier_init(raw_empty(s), STRAIGHTENERS);
      }
    }
    ptx::fence_mbarrier_init();
  }

  // The last act of a producer that multicasts: a CTA must not end while others still arrive at its
  // barriers, and a barrier of the cluster does not wait for arrivals that are on their way.
  FASTGEMM_DEVICE void wait_until_free(RingPosition<STAGES> at) const {
    for (int s = 0; s < STAGES; ++s, at.advance()) ptx::mbarrier_wait(empty(at.stage), at.lap ^ 1);
  }
};

}  // namespace fastgemm
