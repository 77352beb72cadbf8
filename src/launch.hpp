// From a loaded kernel and a problem to work in a stream.
#pragma once

#include <cstdint>
#include <memory>

#include "fastgemm/gemm.hpp"
#include "loaded_kernel.hpp"

namespace fastgemm {

// A kernel with what its launches have in common for all problems of the same extents and traits.
struct Launchable {
  std::weak_ptr<LoadedKernel> kernel;  // the cache of loaded kernels decides how long it stays
  KernelConfig config;
  std::uint32_t tiles_m, tiles_n, ctas, k_tiles_of_split;
};

bool is_capturing(Stream stream);

// Enqueues the kernel (before it the one that repacks, behind it the one that adds up the splits of
// K, where there are such) for a canonical problem. Throws
// DeviceError that names kernel, problem and device.
void launch(const Launchable& launchable, const LoadedKernel& kernel, const GemmProblem& problem,
            Stream stream);

}  // namespace fastgemm
