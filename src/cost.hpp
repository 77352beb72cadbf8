// The cost models of the kernel families, behind cost() of planner.hpp.
#pragma once

#include "planner.hpp"

namespace fastgemm {

Cost gemv_cost(const KernelConfig& kernel, const GemmProblem& problem,
               const HardwareSpec& hardware);
Cost sm90_cost(const KernelConfig& kernel, const GemmProblem& problem,
               const HardwareSpec& hardware);
// Families sm70, sm75 and sm80.
Cost mma_sync_cost(const KernelConfig& kernel, const GemmProblem& problem,
                   const HardwareSpec& hardware);

// Bytes of every element, once: of A and B, and of all operands.
double input_bytes(const GemmProblem& problem);
double least_bytes(const GemmProblem& problem);

}  // namespace fastgemm
