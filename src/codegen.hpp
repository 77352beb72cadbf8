// From a kernel's constants to its name and its source.
#pragma once

#include <string>

#include "fastgemm/plan.hpp"

namespace fastgemm {

// The kernel's extern "C" name, which profilers show: "fastgemm_sm80_bf16_kk_128x128x64_...".
std::string kernel_name(const KernelConfig& kernel);

// Of the kernel before it in the same source, where operands are repacked.
std::string repack_kernel_name(const KernelConfig& kernel);

// Of the kernel behind it, where K is split.
std::string reduce_kernel_name(const KernelConfig& kernel);

// The Config struct and the entry. The rest is include/fastgemm/device/.
std::string kernel_source(const KernelConfig& kernel);

}  // namespace fastgemm
