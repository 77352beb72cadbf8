// The products that this thread computed last, ready to be launched again over other memory.
#pragma once

#include <cstdint>
#include <memory>

#include "fastgemm/gemm.hpp"
#include "launch.hpp"

namespace fastgemm {

// What validate(), canonical() and the look-up of a kernel gave for a product. It holds for all
// products of the same extents, strides and dtypes whose addresses are aligned alike and whose
// operands are as clearly apart.
struct RecentProduct {
  // The bytes that a view touches, relative to its address.
  struct Reach {
    std::int64_t begin, end;
  };

  GemmProblem asked, canonical;
  GemmConfig config;
  int device = -1;
  std::uint64_t generation = 0;  // of the caches
  bool exchanged = false;        // canonical is the transposed product: its A is the caller's B
  bool c_may_be_d = false;
  Reach a, b, c, d;
  std::shared_ptr<const Launchable> launchable;

  // The canonical form of `problem`, which this fits.
  GemmProblem canonical_of(const GemmProblem& problem) const;
};

// The one that fits, or null: then the long way decides. Takes no lock. `device` -1: any.
const RecentProduct* find_recent(const GemmProblem& asked, const GemmConfig& config, int device);

// Keeps a product that has just been made ready: validated, not empty.
void remember(const GemmProblem& asked, const GemmProblem& canonical, const GemmConfig& config,
              int device, std::shared_ptr<const Launchable> launchable);

}  // namespace fastgemm
