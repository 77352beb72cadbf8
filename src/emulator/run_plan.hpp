// Runs the kernels of a plan on the emulated machine: what launch.cpp does with the driver.
#pragma once

#include <string>
#include <vector>

#include "emulator/counters.hpp"
#include "fastgemm/emulate.hpp"
#include "fastgemm/plan.hpp"

namespace fastgemm::emulated {

struct PlanResult {
  std::vector<std::string> kernels;  // in the order of their launches
  Counters counters;
};

// The plan's problem has its pointers in host memory. Throws CompileError, EmulatorError.
PlanResult run_plan(const Plan& plan, const EmulatorOptions& options);

}  // namespace fastgemm::emulated
