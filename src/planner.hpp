// The steps of planning that its files share: candidates -> check -> cost -> pick.
#pragma once

#include <string>
#include <vector>

#include "fastgemm/plan.hpp"

namespace fastgemm {

// What a tiling strategy proposes: a block tile. Everything else follows from it, the problem and
// the hardware.
struct Tiling {
  int block_m, block_n, block_k;
};

struct Strategy {
  const char* name;
  std::vector<Tiling> (*propose)(const GemmProblem&, const HardwareSpec&);
};
const std::vector<Strategy>& strategy_list();  // strategies.cpp

// The part of a kernel that the problem alone decides: dtypes, contiguous indices, widths of global
// accesses. Equal traits and extents mean that the same plan fits.
struct ProblemTraits {
  DType in, out;
  Major a_major, b_major;
  int a_copy_bytes, b_copy_bytes, d_vector;
  bool has_c;
};
ProblemTraits traits_of(const GemmProblem& problem);  // of a canonical problem

// Dynamic shared memory of a CTA in bytes. Codegen asserts that the kernel template says the same.
int shared_bytes(const KernelConfig& kernel);

// Registers a thread is expected to need. Generous by up to 30: a kernel that is let through must
// not spill.
int estimated_registers(const KernelConfig& kernel);

// CTAs that an SM holds at once, by shared memory, threads and estimated registers.
int ctas_per_sm(const KernelConfig& kernel, const HardwareSpec& hardware);

// Block tiles of D and of the whole batch.
std::int64_t tiles_m(const KernelConfig& kernel, const GemmProblem& problem);
std::int64_t tiles_n(const KernelConfig& kernel, const GemmProblem& problem);

Cost cost(const KernelConfig& kernel, const GemmProblem& problem, const HardwareSpec& hardware);

}  // namespace fastgemm
