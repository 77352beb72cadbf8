// The second kernel of a split K: adds the partial sums in a fixed order, and finishes D.
#pragma once

#include "fastgemm/device/epilogue.cuh"
#include "fastgemm/device/gated_tile.cuh"
#include "fastgemm/device/params.cuh"
#include "fastgemm/device/ptx/dependent_launch.cuh"
#include "fastgemm/device/ptx/global.cuh"
#include "fastgemm/device/ptx/thread.cuh"

namespace fastgemm {

// With Config::SPLIT_K, split s of batch b leaves its sums of A[:, K_s] * B[K_s, :] in matrix
// b * splits + s of a float32 workspace, whose rows have a pitch of d_m_stride. A thread adds up
// COUNT neighbouring elements; threads of a warp go along whichever side of D is contiguous.
template <class Config>
FASTGEMM_DEVICE void reduce_splits(const GemmParams& partial, const GemmParams& p) {
  constexpr int COUNT = 4;  // one load of a partial sum; few, so that there are many threads
  if constexpr (Config::DEPENDENT_LAUNCH) ptx::griddepcontrol_wait();

  const i64 vectors = (p.n + COUNT - 1) / COUNT;  // of a row
  const i64 total = p.batch * p.m * vectors;
  for (i64 i = i64(ptx::block_index()) * REDUCE_THREADS + ptx::thread_index(); i < total;
       i += i64(ptx::grid_size()) * REDUCE_THREADS) {
    const i64 matrix = i / (p.m * vectors), within = i - matrix * p.m * vectors;
    const i64 row = Config::SWAP_AB ? within % p.m : within / vectors;
    const i64 col = (Config::SWAP_AB ? within / p.m : within % vectors) * COUNT;
    const float* source = static_cast<const float*>(partial.d) +
                          matrix * p.splits * partial.d_batch_stride + row * partial.d_m_stride +
                          col;
    float sum[COUNT] = {};
#pragma unroll 16  // loads of so many splits under way at once; the additions keep their order
    for (u32 split = 0; split < p.splits; ++split) {
      u32 words[COUNT];
      ptx::ld_global_words<COUNT>(words, source + split * partial.d_batch_stride);
#pragma unroll
      for (int j = 0; j < COUNT; ++j) sum[j] += __uint_as_float(words[j]);
    }
    const OutputTile<Config> out(p, matrix, row, col, 1, p.n - col);
    if constexpr (Config::D_VECTOR >= 4)
      out.template finish<COUNT>(0, 0, sum);
    else
#pragma unroll
      for (int j = 0; j < COUNT; ++j) {
        const float one[1] = {sum[j]};
        out.template finish<1>(0, j, one);
      }
  }
}

// The same for a gated epilogue: a thread adds up a gate and its up, wherever they lie in the
// product, and finishes one element of D.
template <class Config>
FASTGEMM_DEVICE void reduce_gated_splits(const GemmParams& partial, const GemmParams& p) {
  if constexpr (Config::DEPENDENT_LAUNCH) ptx::griddepcontrol_wait();
  const EpilogueParams& e = static_cast<const FusedParams&>(p).epilogue;
  constexpr bool BY_ROWS = Config::GATE == Gate::M;
  const i64 rows = BY_ROWS ? p.m / 2 : p.m, cols = BY_ROWS ? p.n : p.n / 2;  // of D
  for (i64 i = i64(ptx::block_index()) * REDUCE_THREADS + ptx::thread_index();
       i < p.batch * rows * cols; i += i64(ptx::grid_size()) * REDUCE_THREADS) {
    const i64 matrix = i / (rows * cols), within = i - matrix * rows * cols;
    const i64 row = Config::SWAP_AB ? within % rows : within / cols;
    const i64 col = Config::SWAP_AB ? within / rows : within % cols;
    const i64 pitch = partial.d_m_stride;
    const float* gates =
        static_cast<const float*>(partial.d) + matrix * p.splits * partial.d_batch_stride +
        row * (BY_ROWS ? e.gate_step : 1) * pitch + col * (BY_ROWS ? 1 : e.gate_step);
    const float* ups = gates + e.gate_offset * (BY_ROWS ? pitch : 1);
    float gate[1] = {}, up[1] = {};
#pragma unroll 2
    for (u32 split = 0; split < p.splits; ++split) {
      gate[0] += __uint_as_float(
          ptx::ld_global(reinterpret_cast<const u32*>(gates + split * partial.d_batch_stride)));
      up[0] += __uint_as_float(
          ptx::ld_global(reinterpret_cast<const u32*>(ups + split * partial.d_batch_stride)));
    }
    gate[0] *= p.alpha, up[0] *= p.alpha;
    epilogue_at<typename Config::Epilogue>(p, {matrix, row, col}).apply(gate, up, 0, 0, 1);
    OutputTile<GatedConfig<Config>> out(p, matrix, row, col, 1, 1);
    out.alpha = 1.0f;
    out.template finish<1>(0, 0, gate);
  }
}

}  // namespace fastgemm
