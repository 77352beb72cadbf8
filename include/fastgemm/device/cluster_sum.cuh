// Split K inside a cluster: its CTAs multiply parts of K, and add up through each other's shared
// memory.
#pragma once

#include "fastgemm/device/mainloop_sm90.cuh"
#include "fastgemm/device/ptx/barrier.cuh"
#include "fastgemm/device/ptx/cluster.cuh"
#include "fastgemm/device/ptx/mbarrier.cuh"
#include "fastgemm/device/ptx/shared.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/ring_sm90.cuh"

namespace fastgemm {

// Every CTA finishes some columns of the block tile. Each sends its sums of them to it, also to
// itself, and the finisher adds up what came in the order of the ranks: the same bits every time.
//
//   slots of a finisher, in its shared memory:  [CTAS][consumer threads of a CTA][slice]
//
// A thread's sums go to the thread of the same index, so that nobody has to know which elements
// they are.
template <class Config>
struct ClusterSum {
  static constexpr int CTAS = Config::CLUSTER_K;
  static constexpr int BLOCKS_M = WarpgroupTile<Config>::BLOCKS_M;
  static constexpr int ALL_TILES = WarpgroupTile<Config>::TILES_N;
  static constexpr int TILES_N = max_of(ALL_TILES / CTAS, 1);  // 16 columns each, of one finisher
  static constexpr int FINISHERS = ALL_TILES / TILES_N;
  static_assert(FINISHERS * TILES_N == ALL_TILES && FINISHERS <= CTAS,
                "columns are shared out evenly");

  static constexpr int THREADS = RingSm90<Config>::CONSUMERS * WARPGROUP_THREADS;
  static constexpr int PIECES = BLOCKS_M * TILES_N * 2;  // of 16 bytes, a thread's
  static constexpr int SLOT_BYTES = PIECES * THREADS * 16;
  static constexpr int BYTES = CTAS > 1 ? CTAS * SLOT_BYTES : 0;
  static constexpr int BARRIER_BYTES = CTAS > 1 ? 2 * 8 : 0;

  u32 slots;     // shared memory, BYTES
  u32 barriers;  // arrived, then drained
  u32 rank;
  u32 lap = 0;  // parity of the phase of both barriers

  FASTGEMM_DEVICE u32 arrived() const { return barriers; }
  FASTGEMM_DEVICE u32 drained() const { return barriers + 8; }
  FASTGEMM_DEVICE bool finishes() const { return rank < FINISHERS; }
  FASTGEMM_DEVICE int first_column() const { return static_cast<int>(rank) * TILES_N * 16; }

  // arrived: one thread announces the bytes of all CTAs. drained: a warp of a finisher has read
  // what this CTA sent it.
  FASTGEMM_DEVICE void init_barriers() const {
    ptx::mbarrier_init(arrived(), 1);
    ptx::mbarrier_init(drained(), FINISHERS * THREADS / WARP_THREADS);
  }

  // What this CTA sent has been read. The last act of a consumer, too: a CTA must not end while
  // others still arrive at its barriers.
  FASTGEMM_DEVICE void wait_until_drained() const { ptx::mbarrier_wait(drained(), lap ^ 1); }

  // Sends the sums of one block tile, and of a finisher's columns brings the total into `sum`.
  FASTGEMM_DEVICE void exchange(const float (&part)[BLOCKS_M][ALL_TILES][8],
                                float (&sum)[BLOCKS_M][TILES_N][8]) {
    const int thread = ptx::thread_index();
    if (thread == 0 && finishes()) ptx::mbarrier_arrive_expect_tx(arrived(), BYTES);
    wait_until_drained();  // of the block tile before
#pragma unroll
    for (int j = 0; j < ALL_TILES; ++j)
#pragma unroll
      for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float (&p)[8] = part[i][j];
          ptx::st_async_v4(slot(rank, (i * TILES_N + j % TILES_N) * 2 + half, thread), arrived(),
                           j / TILES_N,
                           {p[4 * half], p[4 * half + 1], p[4 * half + 2], p[4 * half + 3]});
        }
    if (finishes()) {
      ptx::mbarrier_wait(arrived(), lap);
#pragma unroll
      for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
        for (int j = 0; j < TILES_N; ++j)
#pragma unroll
          for (int half = 0; half < 2; ++half)
#pragma unroll
            for (int from = 0; from < CTAS; ++from) {
              const Chunk c = ptx::ld_shared_v4(slot(from, (i * TILES_N + j) * 2 + half, thread));
#pragma unroll
              for (int x = 0; x < 4; ++x) {
                float& total = sum[i][j][4 * half + x];
                total = (from == 0 ? 0.0f : total) + __uint_as_float(c.word[x]);
              }
            }
      ptx::bar_warp_sync();
      const int lane = thread % WARP_THREADS;
      if (lane < CTAS) ptx::mbarrier_arrive_cluster(drained(), lane);
    }
    lap ^= 1;
  }

 private:
  FASTGEMM_DEVICE u32 slot(int from, int piece, int thread) const {
    return slots + from * SLOT_BYTES + (piece * THREADS + thread) * 16;
  }
};

}  // namespace fastgemm
