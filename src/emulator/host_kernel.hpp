// A kernel's source as machine code of the host: compiled ahead, from the disk cache, or by the
// system's C++ compiler.
#pragma once

#include <string>

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/emulated/prelude.cuh"
#include "fastgemm/plan.hpp"

namespace fastgemm::emulated {

struct HostKernel {
  const KernelEntry* main = nullptr;
  const KernelEntry* repack = nullptr;  // copies operands first
  const KernelEntry* reduce = nullptr;  // adds up a split K
};

// Each once a process. Throws CompileError with the compiler's log, or with how to get one.
HostKernel host_kernel(const KernelConfig& config);

// The C++ source of the kernel and of what the library looks for in it.
std::string host_source(const KernelConfig& config);

}  // namespace fastgemm::emulated
