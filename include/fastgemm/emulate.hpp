// The emulator: runs the very kernel of a product on the CPU, checks every access, and counts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fastgemm/error.hpp"
#include "fastgemm/export.hpp"
#include "fastgemm/hardware.hpp"
#include "fastgemm/plan.hpp"
#include "fastgemm/problem.hpp"

namespace fastgemm {

// What the emulated machine executed of one instruction. Those of a warp count once for its 32
// threads; wgmma once for a warpgroup, the TMA's once for a copy.
struct InstructionCounts {
  std::string name;  // "ldmatrix"
  std::int64_t executed = 0;
  std::int64_t shared_bytes = 0;
  std::int64_t wavefronts = 0;      // passes over the 32 banks of shared memory
  std::int64_t bank_conflicts = 0;  // passes beyond those that the bytes need
  std::int64_t global_bytes = 0;
  std::int64_t sectors = 0;  // 32-byte pieces of global memory
};

struct EmulatorReport {
  std::vector<std::string> kernels;  // as they were launched
  std::string config, arch;
  std::int64_t ctas = 0;
  int threads = 0;  // per CTA
  std::uint64_t seed = 0;
  double seconds = 0;
  std::vector<InstructionCounts> instructions;  // those that were executed

  FASTGEMM_API std::string str() const;  // a short table

  // Adds what another product's kernels did.
  FASTGEMM_API void add(const EmulatorReport& other);
};

struct EmulatorOptions {
  std::uint64_t seed = 0;  // of the order in which threads run; the result must not depend on it
  int workers = 0;         // threads of this machine that run CTAs; 0: one for each of its cores
};

// Computes the product with the kernel that the plan for `hardware` has, all pointers in host
// memory. Throws InvalidValue, InvalidType; CompileError where the kernel was not compiled ahead
// and there is no C++ compiler; EmulatorError where the kernel does what it must not.
FASTGEMM_API EmulatorReport emulate(const GemmProblem& problem, const HardwareSpec& hardware,
                                    const GemmConfig& config = {},
                                    const EmulatorOptions& options = {});

}  // namespace fastgemm
