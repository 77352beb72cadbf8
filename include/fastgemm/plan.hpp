// What the planner decides: GemmConfig (wishes), KernelConfig (all constants), Plan (with reasons).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fastgemm/export.hpp"
#include "fastgemm/hardware.hpp"
#include "fastgemm/problem.hpp"

namespace fastgemm {

// Kernel families, named after the first architecture that has their instructions; gemv has
// kernels for all of them.
enum class Family : std::uint8_t { sm70, sm75, sm80, sm90, gemv };
FASTGEMM_API const char* name(Family family);
FASTGEMM_API Family family_from_name(std::string_view name);  // throws InvalidValue

// What the caller wants fixed; every field left empty stays the planner's.
struct FASTGEMM_API GemmConfig {
  std::optional<Family> family;
  std::optional<std::string> strategy;  // the name of a tiling strategy, see strategies()
  // Block tile: what a CTA computes, and its step along K.
  std::optional<int> block_m, block_n, block_k;
  // Warp tile: the part of the block tile of one warp (family sm90: of one warpgroup).
  std::optional<int> warp_m, warp_n;
  std::optional<int> split_k;     // parts of K that CTAs sum up independently; 1 is off
  std::optional<int> num_stages;  // depth of the shared-memory ring; 1 is off
  std::optional<bool> swizzle;    // permute 16-byte chunks against bank conflicts
  // Family sm90: bytes of a swizzled row of A and B in shared memory, 128, 64 or 32; 16 is off.
  std::optional<int> swizzle_bytes;
  std::optional<int> raster_group;    // rows of tiles walked together for L2; 0 is off
  std::optional<bool> staged_stores;  // D goes through shared memory, not straight from registers
  // A or B is first copied into a workspace, in 16-byte aligned rows of whole 128-byte lines.
  std::optional<bool> repack_a, repack_b;
  // Families sm80 and sm90. Rows of A or B that begin anywhere are read in aligned chunks of 16
  // bytes; sm80 gathers its fragments from these, sm90 straightens the rows in shared memory.
  std::optional<bool> shift_a, shift_b;
  // Family sm90. Swapped operands: D^T = B^T A^T, rows and columns of D change sides.
  std::optional<bool> swap_ab;
  // CTAs of a cluster, above and beside each other, and sharing a block tile's K; 1 is off.
  std::optional<int> cluster_m, cluster_n, cluster_k;
  std::optional<bool> multicast;         // a cluster's CTAs fetch shared operands once
  std::optional<bool> tma_stores;        // D leaves by the TMA; false: by ordinary stores
  std::optional<bool> dependent_launch;  // the kernel starts while the one before it still runs
  std::optional<bool> prefetch;          // and brings its first k-tiles of A into L2 meanwhile
  std::optional<bool>
      ping_pong;  // two warpgroups take block tiles in turns: one stores, one multiplies
  // A CTA takes block tiles until none is left; false: one tile, whose stores it stages in the
  // ring.
  std::optional<bool> persistent;

  bool operator==(const GemmConfig& o) const;
  bool operator!=(const GemmConfig& o) const { return !(*this == o); }
  std::string str() const;  // the fixed fields: "block_m=128, num_stages=3"
};

// Which index of an operand is contiguous in memory (and so in its shared-memory tile).
enum class Major : std::uint8_t { k, mn };

// All compile-time constants of one kernel. Two equal ones are the same kernel for a given target.
struct FASTGEMM_API KernelConfig {
  Family family = Family::sm80;
  DType in = DType::f16, out = DType::f16;
  Major a_major = Major::k, b_major = Major::k;
  int block_m = 0, block_n = 0, block_k = 0, warp_m = 0, warp_n = 0, num_stages = 0;
  bool swizzle = true;
  int swizzle_bytes = 128;
  int raster_group = 0;
  int split_k = 1;
  bool swap_ab = false;
  bool staged_stores = true;
  bool repack_a = false, repack_b = false;  // of the problem's A and B, swapped or not
  bool shift_a = false, shift_b = false;    // the same
  int cluster_m = 1, cluster_n = 1, cluster_k = 1;
  bool multicast = false, tma_stores = false, dependent_launch = false, prefetch = false;
  bool ping_pong = false, persistent = false;
  // Widest global read that the alignment allows, or 16 where it is shifted; 2: any strides.
  int a_copy_bytes = 16, b_copy_bytes = 16;
  int d_vector = 8;  // elements of D (and C) per access; 1: any strides
  bool has_c = false;
  std::shared_ptr<const Epilogue> epilogue;  // null: none
  std::uint64_t epilogue_id = 0;             // it, how its arrays are read, and transposed or not
  std::uint32_t epilogue_access = 0;         // 4 bits an array (src/fusion.hpp)
  bool epilogue_transposed = false;          // [m] of the expression is the kernel's column
  bool apart = false;  // a second kernel finishes D, from sums in float32, also with split_k 1

  bool shifts() const { return shift_a || shift_b; }
  // Whether rows are shifted of the A and the B that the kernel sees.
  bool shifts_rows_of_a() const { return swap_ab ? shift_b : shift_a; }
  bool shifts_rows_of_b() const { return swap_ab ? shift_a : shift_b; }
  // Whether the block tile alternates gates and ups, and along which index.
  bool gate_along_m() const { return gated() && epilogue_transposed; }
  bool gate_along_n() const { return gated() && !epilogue_transposed; }
  bool gated() const { return epilogue && epilogue->gated && !finishes_apart(); }
  bool finishes_apart() const { return split_k > 1 || apart; }
  int cluster() const { return cluster_m * cluster_n * cluster_k; }
  int threads() const;    // per CTA
  int consumers() const;  // family sm90: warpgroups that multiply
  bool operator==(const KernelConfig& o) const;
  bool operator!=(const KernelConfig& o) const { return !(*this == o); }
  std::string str() const;  // "sm80 128x128x64, warp 64x64, 3 stages, raster 8"
};

struct KernelConfigHash {
  FASTGEMM_API std::size_t operator()(const KernelConfig& c) const;
};

// Predicted microseconds, by cause.
struct Cost {
  double waves = 0;        // CTAs / CTAs that run at once
  double tensor_us = 0;    // Tensor Cores (gemv: CUDA cores), as if nothing else took time
  double shared_us = 0;    // shared-memory bandwidth
  double latency_us = 0;   // the chain of a k-tile, or what the ring leaves of a fetch's latency
  double l2_us = 0;        // operands from L2 into shared memory
  double dram_us = 0;      // every byte once from and to DRAM
  double copy_us = 0;      // narrow copies: instructions, where 16-byte reads are not possible
  double repack_us = 0;    // operands copied into aligned rows by a kernel of their own
  double reduce_us = 0;    // split K: partial sums written, read and added
  double overhead_us = 0;  // launch, first fetch, epilogue of the last wave
  double power_us = 0;     // what the clock loses where the card's power limit is reached
  double total_us = 0;
};

struct Candidate {
  std::string strategy;
  KernelConfig kernel;
  Cost cost;
  std::string refused;  // why check() refused it, in words; empty: it can run
};

struct Plan {
  GemmProblem problem;  // canonical
  HardwareSpec hardware;
  KernelConfig kernel;
  std::string strategy;
  Cost cost;
  int threads = 0;                    // per CTA
  int shared_bytes = 0;               // dynamic shared memory per CTA
  int ctas_per_sm = 0;                // by shared memory, threads and (estimated) registers
  std::int64_t ctas = 0;              // the grid
  std::vector<Candidate> considered;  // best first, refused ones last

  FASTGEMM_API std::string str() const;      // one line
  FASTGEMM_API std::string explain() const;  // the decision with its costs, and the runners-up
};

// Why this kernel cannot run for this problem on this hardware: need, limit and configuration in
// words; empty when it can. The one predicate for planner, tuner and overrides.
FASTGEMM_API std::string check(const KernelConfig& kernel, const HardwareSpec& hardware);

// Candidates -> check -> cost -> pick. Throws InvalidValue / InvalidType when nothing can run.
FASTGEMM_API Plan plan(const GemmProblem& problem, const HardwareSpec& hardware,
                       const GemmConfig& config = {});

// The names of the tiling strategies, in the order in which they are tried.
FASTGEMM_API std::vector<std::string> strategies();

}  // namespace fastgemm
