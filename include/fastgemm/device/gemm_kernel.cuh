// START HERE. The whole kernel: raster -> main loop -> epilogue. A CTA computes one block tile.
#pragma once

#include "fastgemm/device/config.cuh"
#include "fastgemm/device/epilogue.cuh"
#include "fastgemm/device/load_shifted_tile.cuh"
#include "fastgemm/device/load_tile.cuh"
#include "fastgemm/device/mainloop_sm70.cuh"
#include "fastgemm/device/mainloop_sm80.cuh"
#include "fastgemm/device/operand.cuh"
#include "fastgemm/device/params.cuh"
#include "fastgemm/device/raster.cuh"
#include "fastgemm/device/warp_tile.cuh"

namespace fastgemm {

// The panel of D that a warp stages in what was the ring: as many rows of its tile as fit.
template <class Config>
FASTGEMM_DEVICE constexpr int panel_rows() {
  using D = Derived<Config>;
  int rows = Config::WARP_M;
  while (rows > 16 && (Config::WARP_M % rows != 0 ||
                       D::WARPS * Panel<16, Config::WARP_N>::BYTES * (rows / 16) > D::RING_BYTES))
    rows -= 16;
  return rows;
}
template <class Config>
using WarpPanel = Panel<panel_rows<Config>(), Config::WARP_N>;

// Bytes of dynamic shared memory.
template <class Config>
constexpr int SHARED_BYTES =
    Config::STAGED_STORES
        ? max_of(Derived<Config>::RING_BYTES, Derived<Config>::WARPS* WarpPanel<Config>::BYTES)
        : Derived<Config>::RING_BYTES;

// What brings an operand's k-tiles. `origin`: element (0, 0) of the CTA's first one; `first`: which
// of the outer ones that is.
template <class Tile, int COPY_BYTES, int THREADS>
FASTGEMM_DEVICE auto tile_loader(const OperandView& operand, const u16* origin, i64 first) {
  if constexpr (Tile::SHIFTED)
    return ShiftedTileLoader<Tile, THREADS>(ptx::thread_index(), operand.lowest(), origin,
                                            operand.outer_stride, operand.k_stride,
                                            operand.outer - first);
  else
    return TileLoader<Tile, COPY_BYTES, THREADS>(origin, operand.outer_stride, operand.k_stride,
                                                 operand.outer - first);
}

template <class Config>
FASTGEMM_DEVICE void gemm_kernel(const GemmParams& p) {
  using D = Derived<Config>;
  extern __shared__ Chunk shared_memory[];
  const u32 ring = ptx::cvta_to_shared(shared_memory);

  const TileIndex index = raster<Config::RASTER_GROUP>(ptx::block_index(), p.tiles_m, p.tiles_n);
  const i64 m0 = i64(index.m) * Config::BLOCK_M, n0 = i64(index.n) * Config::BLOCK_N;

  const int k_tiles = static_cast<int>((p.k + Config::BLOCK_K - 1) / Config::BLOCK_K);
  const SplitIndex split =
      split_index<Config::SPLIT_K>(index.batch, k_tiles, p.splits, p.k_tiles_of_split);
  const i64 k0 = i64(split.first_k_tile) * Config::BLOCK_K;
  const i64 k = min_of<i64>(p.k - k0, i64(split.k_tiles) * Config::BLOCK_K);

  const OperandView a = operand_a(p), b = operand_b(p);
  const u16* origin_a = a.at(split.batch, m0, k0);
  const u16* origin_b = b.at(split.batch, n0, k0);
  const auto load_a =
      tile_loader<typename D::ATile, Config::A_COPY_BYTES, D::THREADS>(a, origin_a, m0);
  const auto load_b =
      tile_loader<typename D::BTile, Config::B_COPY_BYTES, D::THREADS>(b, origin_b, n0);
  WarpTile<Config> tile({origin_a, a.outer_stride, a.k_stride},
                        {origin_b, b.outer_stride, b.k_stride});
  tile.clear();
  if constexpr (Config::FAMILY == 80)
    mainloop_sm80<Config>(tile, load_a, load_b, k, ring);
  else
    mainloop_sm70<Config>(tile, load_a, load_b, k, ring);

  using Mma = typename WarpTile<Config>::Mma;
  const OutputTile<Config> out(p, index);
  if constexpr (Config::STAGED_STORES) {
    ptx::bar_sync();  // the last k-tile has been read: the ring is free
    epilogue_staged<WarpPanel<Config>, Mma, D::MMA>(tile.accumulator, out, tile.first_row(),
                                                    tile.first_col(),
                                                    ring + tile.warp() * WarpPanel<Config>::BYTES);
  } else {
    epilogue_direct<Mma, D::MMA>(tile.accumulator, out, tile.first_row(), tile.first_col());
  }
}

}  // namespace fastgemm
