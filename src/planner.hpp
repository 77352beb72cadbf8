// The steps of planning that its files share: candidates -> check -> cost -> pick.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fastgemm/plan.hpp"

namespace fastgemm {

// What a tiling strategy proposes: a block tile, and for family sm90 the cluster. Everything else
// follows from it, the problem and the hardware.
struct Tiling {
  int block_m, block_n, block_k;
  int cluster_m = 1, cluster_n = 1, cluster_k = 1;
  int split_k = 1;
  int warp_n = 0, num_stages = 0;  // family gemv only; elsewhere they follow
  bool ping_pong = false;
  bool shift = false;  // operands that 16-byte reads cannot take as they lie are shifted
};

struct Strategy {
  const char* name;
  std::vector<Tiling> (*propose)(const GemmProblem&, const HardwareSpec&, Family);
  bool gemv = false;  // for that family, and no other
};
const std::vector<Strategy>& strategy_list();  // strategies.cpp

// How an operand lies in memory: no stride is 1; one is; and rows are whole lines of 128 bytes.
enum class Runs : std::uint8_t { none, rows, lines };

// The part of a kernel that the problem alone decides: dtypes, contiguous indices, widths of global
// accesses. Equal traits and extents mean that the same plan fits.
struct ProblemTraits {
  DType in, out;
  Major a_major, b_major;
  Runs a_runs, b_runs;
  int a_copy_bytes, b_copy_bytes, d_vector;
  bool has_c;
  bool tma;                    // the TMA can read A and B
  bool tma_stores;             // and write D
  std::uint64_t epilogue_ids;  // of the fused epilogue and how it reads its arrays; 0: none

  // Whether rows begin where 16-byte reads cannot, with elements side by side: what shifting is
  // for.
  bool shifts_a() const { return a_copy_bytes < 16 && a_runs != Runs::none; }
  bool shifts_b() const { return b_copy_bytes < 16 && b_runs != Runs::none; }

  std::uint64_t code() const;  // all of it but the epilogue in one number
  bool operator==(const ProblemTraits& o) const {
    return code() == o.code() && epilogue_ids == o.epilogue_ids;
  }
};
ProblemTraits traits_of(const GemmProblem& problem);  // of a canonical problem

// The index of an operand that is contiguous, or closest to it; "outer" is m of A and n of B.
Major major_of(std::int64_t outer_stride, std::int64_t k_stride);

// A kernel's constants, as far as they can be had: what cannot run, check() refuses.
// `problem`: as the kernel computes it, swapped or not.
KernelConfig complete(const Tiling& tiling, Family family, bool swap_ab, const GemmProblem& problem,
                      const ProblemTraits& traits, const HardwareSpec& hardware,
                      const GemmConfig& wish);

// A canonical problem as the kernel computes it: transposed where its operands are swapped.
GemmProblem oriented(const KernelConfig& kernel, const GemmProblem& problem);

// Columns of a block tile that one CTA finishes: all, or its part where a cluster shares K.
int finished_cols(const KernelConfig& kernel);

// Columns of D that a warpgroup stores with one TMA copy (device/epilogue_sm90.cuh).
int store_panel_cols(const KernelConfig& kernel);

// Whether a kernel of family gemv multiplies with mma.m16n8k16 (device/gemv_sums.cuh).
bool gemv_on_tensor_cores(const KernelConfig& kernel);

// Elements of K that a warp of family gemv reads in one step (device/gemv_reads.cuh).
int gemv_warp_k(const KernelConfig& kernel);

// Dynamic shared memory of a CTA in bytes. Codegen asserts that the kernel template says the same.
int shared_bytes(const KernelConfig& kernel);

// Register count of consumer threads where warps have different ones (family sm90), else that of
// the launch.
int register_limit(const KernelConfig& kernel, const HardwareSpec& hardware);

// Registers a thread is expected to need. Generous by up to 30: a kernel that is let through must
// not spill.
int estimated_registers(const KernelConfig& kernel);

// The second argument of __launch_bounds__. Of family sm90 two where accumulators are few enough
// for 128 registers a thread; narrow tiles wait for memory: one deep ring serves them better. One
// elsewhere: without it, ptxas aims at an occupancy of its own choice and spills for it.
int launch_ctas_per_sm(const KernelConfig& kernel);

// CTAs that an SM holds at once, by shared memory, threads and estimated registers.
int ctas_per_sm(const KernelConfig& kernel, const HardwareSpec& hardware);

// Matrices of a batch that differ.
inline std::int64_t matrices_of(const MatrixView& v, std::int64_t batch) {
  return v.batch_stride == 0 ? 1 : batch;
}

constexpr int warpgroup = 128;  // threads

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Block tiles along M and N of one matrix of the batch.
std::int64_t tiles_m(const KernelConfig& kernel, const GemmProblem& problem);
std::int64_t tiles_n(const KernelConfig& kernel, const GemmProblem& problem);

// With K split: k-tiles of each split but the last, and the float32 workspace for the partial sums,
// whose rows are 32-byte aligned.
std::int64_t k_tiles_of_split(const KernelConfig& kernel, const GemmProblem& problem);
std::int64_t k_tiles_of_last_split(const KernelConfig& kernel, const GemmProblem& problem);
std::int64_t workspace_pitch(const GemmProblem& problem);
std::size_t workspace_bytes(const GemmProblem& problem, const KernelConfig& kernel);

// The kernel that adds up the splits: its teams of threads, each of which finishes four neighbours
// of a row or what one gate and its up leave, and 2^bits lanes of a team. They share the splits
// until each has no more than four, or the GPU enough to do.
std::int64_t reduce_teams(const GemmProblem& problem);
int reduce_lane_bits(const GemmProblem& problem, const KernelConfig& kernel);

// The most k-tiles that one CTA multiplies for a block tile.
std::int64_t k_tiles_of_cta(const KernelConfig& kernel, const GemmProblem& problem);

// All block tiles: of the batch and of every split of K. A cluster computes its whole rectangle,
// whether it exists or not.
double block_tiles(const KernelConfig& kernel, const GemmProblem& problem);

// Clusters of so many CTAs that fit beside each other with one CTA an SM; and those of a kernel.
std::int64_t clusters_of(int ctas, const HardwareSpec& hardware);
std::int64_t clusters_at_once(const KernelConfig& kernel, const HardwareSpec& hardware);

// CTAs to launch: one for every block tile or, of the persistent family sm90, as many as run at
// once.
std::int64_t grid_size(const KernelConfig& kernel, const GemmProblem& problem,
                       const HardwareSpec& hardware);

Cost cost(const KernelConfig& kernel, const GemmProblem& problem, const HardwareSpec& hardware);

}  // namespace fastgemm
