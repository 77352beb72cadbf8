// Family sm90: which block tiles, and which k-tiles of them, a CTA takes.
#pragma once

#include "fastgemm/device/params.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/raster.cuh"
#include "fastgemm/device/ring_sm90.cuh"

namespace fastgemm {

// Clusters take cluster tiles, CLUSTER_M x CLUSTER_N block tiles, in the order of the raster.
// CTAs of different k_rank have the same block tile.
template <class Config>
FASTGEMM_DEVICE u32 cluster_rows(const GemmParams& p) {
  return (p.tiles_m + Config::CLUSTER_M - 1) / Config::CLUSTER_M;
}
template <class Config>
FASTGEMM_DEVICE u32 cluster_cols(const GemmParams& p) {
  return (p.tiles_n + Config::CLUSTER_N - 1) / Config::CLUSTER_N;
}

template <class Config>
FASTGEMM_DEVICE u32 k_rank(u32 cta_rank) {
  return cta_rank / RingSm90<Config>::TILES;
}

// The k-tiles of a block tile that CTA `cta_rank` of the cluster multiplies.
template <class Config>
FASTGEMM_DEVICE SplitIndex split_of(const GemmParams& p, const TileIndex& index, u32 cta_rank) {
  const int all = static_cast<int>((p.k + Config::BLOCK_K - 1) / Config::BLOCK_K);
  return cluster_share<Config::CLUSTER_K>(
      split_index<Config::SPLIT_K>(index.batch, all, p.splits, p.k_tiles_of_split),
      k_rank<Config>(cta_rank));
}

// Walks the block tiles of CTA `cta_rank` in its cluster: clusters take turns, or have one each.
template <class Config>
class TileWalk {
  static constexpr u32 CLUSTER = RingSm90<Config>::CLUSTER;

 public:
  FASTGEMM_DEVICE TileWalk(const GemmParams& p, u32 cta_rank)
      : cta_rank_(cta_rank), tile_(ptx::block_index() / CLUSTER), tiles_(tile_ + 1) {
    if constexpr (Config::PERSISTENT)
      tiles_ = cluster_rows<Config>(p) * cluster_cols<Config>(p) * static_cast<u32>(p.batch) *
               (Config::SPLIT_K ? p.splits : 1);
  }

  FASTGEMM_DEVICE bool more() const { return tile_ < tiles_; }
  FASTGEMM_DEVICE void next() { tile_ += Config::PERSISTENT ? ptx::grid_size() / CLUSTER : 1; }
  FASTGEMM_DEVICE TileIndex index(const GemmParams& p) const {
    const u32 rank = cta_rank_ % RingSm90<Config>::TILES;
    TileIndex index =
        raster<Config::RASTER_GROUP>(tile_, cluster_rows<Config>(p), cluster_cols<Config>(p));
    index.m = index.m * Config::CLUSTER_M + rank % Config::CLUSTER_M;
    index.n = index.n * Config::CLUSTER_N + rank / Config::CLUSTER_M;
    return index;
  }

 private:
  u32 cta_rank_, tile_, tiles_;
};

template <class Config, class Body>
FASTGEMM_DEVICE void for_each_tile(const GemmParams& p, u32 cta_rank, Body body) {
  TileWalk<Config> walk(p, cta_rank);
  if constexpr (!Config::PERSISTENT)
    body(walk.index(p));
  else
    for (; walk.more(); walk.next()) body(walk.index(p));
}

}  // namespace fastgemm
