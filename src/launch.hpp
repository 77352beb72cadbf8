// From a loaded kernel and a problem to work in a stream.
#pragma once

#include <cstdint>
#include <memory>

#include "fastgemm/device/params.cuh"
#include "fastgemm/gemm.hpp"
#include "loaded_kernel.hpp"

namespace fastgemm {

// A kernel with what its launches have in common for all problems of the same extents and traits.
struct Launchable {
  std::weak_ptr<LoadedKernel> kernel;  // the cache of loaded kernels decides how long it stays
  KernelConfig config;
  std::uint32_t tiles_m, tiles_n, ctas, k_tiles_of_split;
};

// All of a plan's kernel but the kernel itself.
Launchable launchable_of(const Plan& plan);

// The kernel's arguments for a problem in the kernel's orientation; without a fusion only those of
// the product.
FusedParams params_of(const Launchable& launchable, const GemmProblem& problem);

// The problem whose D is the partial sums of a split K: float32 matrices, one behind the other.
GemmProblem partial_problem(GemmProblem problem, void* workspace);

// How the splits in `partial` are added up into the D of `problem`.
struct Reduction {
  PartialSums partial;
  std::uint32_t ctas;
};
Reduction reduction_of(const GemmProblem& partial, const GemmProblem& problem,
                       const KernelConfig& kernel);

bool is_capturing(Stream stream);

// Enqueues the kernel (before it the one that repacks, behind it the one that adds up the splits of
// K, where there are such) for a canonical problem. Throws
// DeviceError that names kernel, problem and device.
void launch(const Launchable& launchable, const LoadedKernel& kernel, const GemmProblem& problem,
            Stream stream);

}  // namespace fastgemm
