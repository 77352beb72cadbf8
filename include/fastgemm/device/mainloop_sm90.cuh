// Main loop of family sm90 (Hopper): one warp feeds a ring by TMA, warpgroups multiply out of it.
#pragma once

#include "fastgemm/device/config.cuh"
#include "fastgemm/device/params.cuh"
#include "fastgemm/device/ptx/barrier.cuh"
#include "fastgemm/device/ptx/cluster.cuh"
#include "fastgemm/device/ptx/mbarrier.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/ptx/tma.cuh"
#include "fastgemm/device/ptx/wgmma.cuh"
#include "fastgemm/device/raster.cuh"
#include "fastgemm/device/ring_sm90.cuh"
#include "fastgemm/device/wgmma_descriptor.cuh"

namespace fastgemm {

// What sm80's threads do with cp.async, commit and wait, two kinds of barriers do here:
//
//              producer (one warp)                         consumers (warpgroups)
//   stage s    wait empty[s]: all have read it             wait full[s]: its bytes are in
//              announce the bytes at full[s]               multiply
//              start the copies, which count at full[s]    arrive at empty[s]
//
// Both walk the ring in the same order, tile after tile, so that the producer runs ahead into the
// next tile while the consumers are still in the epilogue of this one.

// An operand's tensor maps. The boxes of `edge` hold the rows that a tile at the operand's edge
// has: the TMA would fill the others with zeros, and take five cycles for each (measured on an
// H200).
struct OperandMaps {
  TensorMap whole, edge;

  FASTGEMM_DEVICE void prefetch() const {
    ptx::prefetch_tensormap(whole);
    ptx::prefetch_tensormap(edge);
  }
};

// The copies of one CTA's slice of an operand's k-tile, of which `present` rows exist: body(bytes
// from the tile's start, x, y, z, w). A k-tile of several columns is read through a map in which K
// is split into SPANs: (k % SPAN, outer, k / SPAN, batch), at the edge column by column. Gated,
// gates and ups alternate in eights, and each column is a copy: (k, outer % 8, gate or up,
// outer / 16).
template <class Tile, bool GATED, class Body>
FASTGEMM_DEVICE void for_each_copy(int outer, int k, int slice, int batch, int present, Body body) {
  if constexpr (Tile::SLICES == 1) slice = 0;  // all of it, for this CTA alone
  if constexpr (GATED) {
    constexpr int COLUMNS = Tile::COPY_COLUMNS;
    const int row = Tile::SLICE_COLUMNS ? 0 : slice * Tile::COPY_ROWS;
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
      const int column = (Tile::SLICE_COLUMNS ? slice * COLUMNS : 0) + i;
      body(column * Tile::COLUMN_BYTES + row * Tile::ROW_BYTES, k + Tile::SPAN * column, 0, 0,
           (outer + row) / 16);
    }
    return;
  }
  if constexpr (Tile::MAJOR == Major::MN) {
#pragma unroll
    for (int box = 0; box < Tile::BOXES; ++box)
      if (box * Tile::SPAN < present)
        body(box * Tile::COLUMN_BYTES + slice * Tile::COPY_BYTES, outer + box * Tile::SPAN,
             k + slice * Tile::COPY_ROWS, 0, batch);
  } else if constexpr (Tile::COLUMNS == 1) {
    const int row = slice * Tile::copy_rows(present);
    if (present > 0) body(row * Tile::ROW_BYTES, k, outer + row, 0, batch);
  } else {
    const int first = Tile::SLICE_COLUMNS ? slice * Tile::COPY_COLUMNS : 0;
    if (present == Tile::OUTER)
      return body(first * Tile::COLUMN_BYTES, 0, outer, k / Tile::SPAN + first, batch);
#pragma unroll 1
    for (int i = first; present > 0 && i < first + Tile::COPY_COLUMNS; ++i)
      body(i * Tile::COLUMN_BYTES, 0, outer, k / Tile::SPAN + i, batch);
  }
}

// What one CTA of the cluster fetches of a block tile, and for whom.
template <class Config>
struct TileSource {
  using A = typename RingSm90<Config>::A;
  using B = typename RingSm90<Config>::B;
  int m, n, m_present, n_present;
  const TensorMap& a_map;
  const TensorMap& b_map;
  int a_batch, b_batch;
  int m_rank, n_rank;

  FASTGEMM_DEVICE TileSource(const GemmParams& p, const OperandMaps& a, const OperandMaps& b,
                             const TileIndex& index, i64 batch, u32 cta_rank)
      : m(index.m * Config::BLOCK_M),
        n(index.n * Config::BLOCK_N),
        m_present(present<A, Config::GATE == Gate::M>(p.m, m)),
        n_present(present<B, Config::GATE == Gate::N>(p.n, n)),
        a_map(m_present < A::OUTER ? a.edge : a.whole),
        b_map(n_present < B::OUTER ? b.edge : b.whole),
        a_batch(p.a_batch_stride ? static_cast<int>(batch) : 0),
        b_batch(p.b_batch_stride ? static_cast<int>(batch) : 0),
        m_rank(cta_rank % Config::CLUSTER_M),
        n_rank(cta_rank / Config::CLUSTER_M) {}

  // What a stage receives by the TMA, from all CTAs that send to this one.
  FASTGEMM_DEVICE int bytes() const {
    return (Config::SHIFT_A ? 0 : A::bytes(m_present)) +
           (Config::SHIFT_B ? 0 : B::bytes(n_present));
  }

  // Starts the copies of k-tile `t` into `stage`.
  FASTGEMM_DEVICE void fetch(const RingSm90<Config>& ring, int stage, int t) const {
    constexpr u32 COLUMN =
        (1u << Config::CLUSTER_M) - 1;  // CTAs above each other have successive ranks
    constexpr u32 ROW = Config::CLUSTER_N == 1 ? 1u : 1u | 1u << Config::CLUSTER_M;
    const u16 share_a = static_cast<u16>(ROW << m_rank);
    const u16 share_b = static_cast<u16>(COLUMN << n_rank * Config::CLUSTER_M);
    if constexpr (!Config::SHIFT_A)
      for_each_a(t, [&](int offset, int x, int y, int z, int w) {
        load<A>(ring.a(stage) + offset, a_map, ring.full(stage), x, y, z, w, share_a);
      });
    if constexpr (!Config::SHIFT_B)
      for_each_b(t, [&](int offset, int x, int y, int z, int w) {
        load<B>(ring.b(stage) + offset, b_map, ring.full(stage), x, y, z, w, share_b);
      });
  }

  // Brings k-tile `t` of A into L2.
  FASTGEMM_DEVICE void prefetch(int t) const {
    for_each_a(t,
               [&](int, int x, int y, int z, int w) { ptx::tma_prefetch_4d(a_map, x, y, z, w); });
  }

 private:
  template <class Body>
  FASTGEMM_DEVICE void for_each_a(int t, Body body) const {
    for_each_copy<A, Config::GATE == Gate::M>(m, t * Config::BLOCK_K, n_rank, a_batch, m_present,
                                              body);
  }
  template <class Body>
  FASTGEMM_DEVICE void for_each_b(int t, Body body) const {
    for_each_copy<B, Config::GATE == Gate::N>(n, t * Config::BLOCK_K, m_rank, b_batch, n_present,
                                              body);
  }

  // How many of the tile's rows (columns) from `first` on exist. Gated, all are fetched.
  template <class Tile, bool GATED>
  FASTGEMM_DEVICE static int present(i64 extent, int first) {
    const i64 left = extent - first;
    return GATED || left > Tile::OUTER ? Tile::OUTER : left > 0 ? static_cast<int>(left) : 0;
  }

  template <class Tile>
  FASTGEMM_DEVICE static void load(u32 shared, const TensorMap& map, u32 barrier, int x, int y,
                                   int z, int batch, u16 ctas) {
    if constexpr (Tile::SLICES == 1)
      ptx::tma_load_4d(shared, map, barrier, x, y, z, batch);
    else
      ptx::tma_load_4d_multicast(shared, map, barrier, x, y, z, batch, ctas);
  }
};

// Fetches the k-tiles of a block tile, or of a split of it. The warp walks the ring as a whole and
// lets one lane act: where stages and coordinates are those of a warp, a copy is one instruction
// with uniform registers. Of a single thread's loop the compiler moves each there, and tries lane
// after lane; stages that are free for longer are stages less.
template <class Config>
FASTGEMM_DEVICE void produce(const RingSm90<Config>& ring, RingPosition<Config::NUM_STAGES>& at,
                             const TileSource<Config>& source, const SplitIndex& split) {
#pragma unroll 1
  for (int t = 0; t < split.k_tiles; ++t, at.advance()) {
    ptx::mbarrier_wait(ring.empty(at.stage), at.lap ^ 1);
    if (ptx::elect_one()) {
      ptx::mbarrier_arrive_expect_tx(ring.full(at.stage), source.bytes());
      source.fetch(ring, at.stage, split.first_k_tile + t);
    }
  }
}

// The accumulators of a warpgroup: blocks of 64 rows, of which warp w holds the 16 from 16 w on.
// WGMMA has no fewer rows: of a tile with fewer, it reads on into the bytes behind, and what comes
// of them is stored nowhere.
template <class Config>
struct WarpgroupTile {
  static constexpr int BLOCKS_M = (Config::WARP_M + 63) / 64;
  static constexpr int TILES_N = Config::BLOCK_N / 16;
  float accumulator[BLOCKS_M][TILES_N][8];
};

// Tells every CTA that sends to this one that this warp has read `stage`.
template <class Config>
FASTGEMM_DEVICE void release(const RingSm90<Config>& ring, int stage) {
  const int lane = ptx::thread_index() % WARP_THREADS;
  if constexpr (Config::MULTICAST && RingSm90<Config>::TILES > 1) {
    if (lane < RingSm90<Config>::TILES) ptx::mbarrier_arrive_cluster(ring.empty(stage), lane);
  } else {
    if (lane == 0) ptx::mbarrier_arrive(ring.empty(stage));
  }
}

// Narrow tiles (decode) wait for memory, not for Tensor Cores.
template <class Config>
constexpr bool NARROW = Config::BLOCK_N <= 32;

// Multiplies the k-tiles of a block tile; `first_row`: of this warpgroup in it. One group of
// products is always under way: a stage is released when the group of the next one has been started
// and its own is done. Narrow tiles rather have their stage filled again at once, and a single
// stage has no next one. all_started() is called when the last group has been started.
template <class Config, class Callback>
FASTGEMM_DEVICE void consume(const RingSm90<Config>& ring, RingPosition<Config::NUM_STAGES>& at,
                             WarpgroupTile<Config>& tile, int first_row, int k_tiles,
                             Callback all_started) {
  using Ring = RingSm90<Config>;
  using A = WgmmaDescriptor<typename Ring::A>;
  using B = WgmmaDescriptor<typename Ring::B>;
  using Multiply = ptx::Wgmma<Config::BLOCK_N>;
  constexpr int UNDER_WAY = NARROW<Config> || Config::NUM_STAGES == 1 ? 0 : 1;
  int previous = 0;
#pragma unroll 1
  for (int t = 0; t < k_tiles; ++t) {
    const u64 a = A::make(ring.a(at.stage), first_row);
    const u64 b = B::make(ring.b(at.stage), 0);
    ptx::mbarrier_wait(ring.full(at.stage), at.lap);
    ptx::wgmma_fence();
#pragma unroll
    for (int slice = 0; slice < Config::BLOCK_K / 16; ++slice)
#pragma unroll
      for (int i = 0; i < WarpgroupTile<Config>::BLOCKS_M; ++i)
        Multiply::template multiply<Config::A_MAJOR == Major::MN, Config::B_MAJOR == Major::MN>(
            typename Config::Input{}, tile.accumulator[i],
            a + A::outer_offset(64 * i) + A::slice_offset(slice), b + B::slice_offset(slice),
            t != 0 || slice != 0);
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<UNDER_WAY>();
    if (UNDER_WAY == 0)
      release<Config>(ring, at.stage);
    else if (t > 0)
      release<Config>(ring, previous);
    previous = at.stage;
    at.advance();
  }
  all_started();
  if constexpr (UNDER_WAY > 0) {
    ptx::wgmma_wait_group<0>();
    release<Config>(ring, previous);
  }
}

}  // namespace fastgemm
