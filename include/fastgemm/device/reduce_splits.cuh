// The second kernel of a split K: adds the partial sums in a fixed order, and finishes D.
#pragma once

#include "fastgemm/device/epilogue.cuh"
#include "fastgemm/device/gated_tile.cuh"
#include "fastgemm/device/params.cuh"
#include "fastgemm/device/ptx/dependent_launch.cuh"
#include "fastgemm/device/ptx/global.cuh"
#include "fastgemm/device/ptx/shuffle.cuh"
#include "fastgemm/device/ptx/thread.cuh"

namespace fastgemm {

// A team of 2^lane_bits neighbouring lanes adds up the same elements, number `index` of the grid's:
// lane l the splits l, l + lanes, l + 2 * lanes ...
struct ReduceTeam {
  i64 index;
  u32 lane;

  FASTGEMM_DEVICE explicit ReduceTeam(u32 lane_bits) {
    const i64 thread = i64(ptx::block_index()) * REDUCE_THREADS + ptx::thread_index();
    index = thread >> lane_bits;
    lane = static_cast<u32>(thread) & ((1u << lane_bits) - 1);
  }
};

// Adds up COUNT neighbouring elements from each `source` on (in split 0); all lanes of a team get
// the sums. The order is that of the splits within a lane, and then of the lanes in pairs: the same
// bits every time. Loads go out four at a time, also of the last few splits, where some read again
// what counts already: one by one, or behind branches, each would wait for the one before it.
template <int SOURCES, int COUNT>
FASTGEMM_DEVICE void add_up(float (&sum)[SOURCES][COUNT], const float* const (&source)[SOURCES],
                            const PartialSums& partial, u32 lane) {
  constexpr int AT_ONCE = 4;
  const u32 lanes = 1u << partial.lane_bits;
#pragma unroll
  for (int s = 0; s < SOURCES; ++s)
#pragma unroll
    for (int j = 0; j < COUNT; ++j) sum[s][j] = 0;
#pragma unroll 1
  for (u32 first = lane; first < partial.splits; first += AT_ONCE * lanes) {
    u32 words[AT_ONCE][SOURCES][COUNT];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      const u32 split = first + i * lanes;
      const i64 offset = (split < partial.splits ? split : first) * partial.matrix_stride;
#pragma unroll
      for (int s = 0; s < SOURCES; ++s)
        ptx::ld_global_words<COUNT>(words[i][s], source[s] + offset);
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i)
#pragma unroll
      for (int s = 0; s < SOURCES; ++s)
#pragma unroll
        for (int j = 0; j < COUNT; ++j)
          sum[s][j] += first + i * lanes < partial.splits ? __uint_as_float(words[i][s][j]) : 0.0f;
  }
#pragma unroll 1
  for (u32 mask = 1; mask < lanes; mask *= 2)
#pragma unroll
    for (int s = 0; s < SOURCES; ++s)
#pragma unroll
      for (int j = 0; j < COUNT; ++j)
        sum[s][j] += ptx::shfl_bfly(sum[s][j], static_cast<int>(mask));
}

// Vector `index` of D, `cols` of which make a row. Teams of a warp go along whichever side of D is
// contiguous; those beyond its end add up the first vector again, for nobody.
struct ReducedVector {
  i64 matrix, row, col;
  bool exists;

  template <bool SWAP_AB>
  FASTGEMM_DEVICE static ReducedVector of(i64 index, i64 batch, i64 rows, i64 cols) {
    const i64 matrix = index / (rows * cols), within = index - matrix * rows * cols;
    if (matrix >= batch) return {0, 0, 0, false};
    return {matrix, SWAP_AB ? within % rows : within / cols,
            SWAP_AB ? within / rows : within % cols, true};
  }
};

// A team finishes COUNT neighbouring elements of D. The next kernel may start at once: it waits
// until this one has ended, which waits for the product. Addresses, with their divisions, are
// computed before that.
template <class Config>
FASTGEMM_DEVICE void reduce_splits(const PartialSums& partial, const GemmParams& p) {
  constexpr int COUNT = 4;  // one load of a partial sum; few, so that there are many threads
  if constexpr (Config::DEPENDENT_LAUNCH) ptx::griddepcontrol_launch_dependents();
  const ReduceTeam team(partial.lane_bits);
  const auto at =
      ReducedVector::of<Config::SWAP_AB>(team.index, p.batch, p.m, (p.n + COUNT - 1) / COUNT);
  const i64 col = at.col * COUNT;
  const float* const source[1] = {partial.data +
                                  at.matrix * partial.splits * partial.matrix_stride +
                                  at.row * partial.m_stride + col};
  const OutputTile<Config> out(p, at.matrix, at.row, col, 1, p.n - col);
  if constexpr (Config::DEPENDENT_LAUNCH) ptx::griddepcontrol_wait();

  float sum[1][COUNT];
  add_up(sum, source, partial, team.lane);
  if (!at.exists || team.lane != 0) return;
  if constexpr (Config::D_VECTOR >= COUNT)
    out.template finish<COUNT>(0, 0, sum[0]);
  else
#pragma unroll
    for (int j = 0; j < COUNT; ++j) {
      const float one[1] = {sum[0][j]};
      out.template finish<1>(0, j, one);
    }
}

// The same for a gated epilogue: a team adds up a gate and its up, wherever they lie in the
// product, and finishes one element of D.
template <class Config>
FASTGEMM_DEVICE void reduce_gated_splits(const PartialSums& partial, const GemmParams& p) {
  if constexpr (Config::DEPENDENT_LAUNCH) ptx::griddepcontrol_launch_dependents();
  const EpilogueParams& e = static_cast<const FusedParams&>(p).epilogue;
  constexpr bool BY_ROWS = Config::GATE == Gate::M;
  const ReduceTeam team(partial.lane_bits);
  const auto at = ReducedVector::of<Config::SWAP_AB>(team.index, p.batch, BY_ROWS ? p.m / 2 : p.m,
                                                     BY_ROWS ? p.n : p.n / 2);
  const i64 pitch = partial.m_stride;
  const float* gates = partial.data + at.matrix * partial.splits * partial.matrix_stride +
                       at.row * (BY_ROWS ? e.gate_step : 1) * pitch +
                       at.col * (BY_ROWS ? 1 : e.gate_step);
  const float* const source[2] = {gates, gates + e.gate_offset * (BY_ROWS ? pitch : 1)};
  OutputTile<GatedConfig<Config>> out(p, at.matrix, at.row, at.col, 1, 1);
  if constexpr (Config::DEPENDENT_LAUNCH) ptx::griddepcontrol_wait();

  float sum[2][1];
  add_up(sum, source, partial, team.lane);
  if (!at.exists || team.lane != 0) return;
  sum[0][0] *= p.alpha, sum[1][0] *= p.alpha;
  epilogue_at<typename Config::Epilogue>(p, {at.matrix, at.row, at.col})
      .template apply<Neighbours<1>>(sum[0], sum[1], 0, 0, 1);
  out.alpha = 1.0f;
  out.template finish<1>(0, 0, sum[0]);
}

}  // namespace fastgemm
