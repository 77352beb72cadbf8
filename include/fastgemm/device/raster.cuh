// Raster: which tile of D a CTA computes. CTAs that run together should share operands in L2.
#pragma once

#include "fastgemm/device/types.cuh"

namespace fastgemm {

struct TileIndex {
  i64 batch;
  u32 m, n;  // in block tiles
};

// GROUP = 0: row by row. Otherwise GROUP rows of tiles are walked together, column by column, so
// that a wave of CTAs covers a compact rectangle instead of a thin strip, and reads fewer distinct
// rows of A and B:
//
//   GROUP = 0          GROUP = 2
//   0 1 2 3            0 2 4 6
//   4 5 6 7            1 3 5 7
template <int GROUP>
FASTGEMM_DEVICE TileIndex raster(u32 cta, u32 tiles_m, u32 tiles_n) {
  const u32 tiles = tiles_m * tiles_n;
  const u32 batch = cta / tiles;
  const u32 tile = cta - batch * tiles;
  if constexpr (GROUP == 0) {
    const u32 m = tile / tiles_n;
    return {batch, m, tile - m * tiles_n};
  } else {
    const u32 group = tile / (GROUP * tiles_n);
    const u32 first_m = group * GROUP;
    const u32 rows = min_of<u32>(GROUP, tiles_m - first_m);  // the last group may have fewer
    const u32 within = tile - first_m * tiles_n;
    const u32 n = within / rows;
    return {batch, first_m + within - n * rows, n};
  }
}

// Which k-tiles a CTA multiplies, and of which matrix: with K split, matrix b * splits + s of the
// grid is split s of matrix b of the batch.
struct SplitIndex {
  i64 batch;
  int first_k_tile, k_tiles;
};

template <bool SPLIT_K>
FASTGEMM_DEVICE SplitIndex split_index(i64 matrix, int k_tiles, u32 splits, u32 k_tiles_of_split) {
  if constexpr (!SPLIT_K) return {matrix, 0, k_tiles};
  const i64 batch = matrix / splits;
  const int first = static_cast<int>((matrix - batch * splits) * k_tiles_of_split);
  return {batch, first, min_of(k_tiles - first, static_cast<int>(k_tiles_of_split))};
}

// Of these k-tiles, those of CTA `rank` where CTAS of a cluster share them: never none, since there
// are CTAS of them or more.
template <int CTAS>
FASTGEMM_DEVICE SplitIndex cluster_share(const SplitIndex& all, u32 rank) {
  if constexpr (CTAS == 1) return all;
  const u32 k_tiles = all.k_tiles;
  const u32 first = k_tiles * rank / CTAS, last = k_tiles * (rank + 1) / CTAS;
  return {all.batch, all.first_k_tile + static_cast<int>(first), static_cast<int>(last - first)};
}

}  // namespace fastgemm
