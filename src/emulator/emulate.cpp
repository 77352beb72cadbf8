// The emulator's pipeline: problem -> plan -> host kernel -> launches -> report.
#include "fastgemm/emulate.hpp"

#include <chrono>

#include "emulator/host_kernel.hpp"
#include "emulator/run_plan.hpp"
#include "planner.hpp"

namespace fastgemm {

EmulatorReport emulate(const GemmProblem& asked, const HardwareSpec& hardware,
                       const GemmConfig& config, const EmulatorOptions& options) {
  validate(asked);
  const GemmProblem problem = canonical(asked);
  EmulatorReport report;
  report.arch = arch_name(hardware.arch.cc);
  report.seed = options.seed;
  if (problem.batch == 0 || problem.m == 0 || problem.n == 0) return report;
  const Plan p = plan(problem, hardware, config);
  emulated::host_kernel(p.kernel);  // its compilation is not timed
  const auto start = std::chrono::steady_clock::now();
  const emulated::PlanResult result = emulated::run_plan(p, options);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  report.kernels = result.kernels;
  report.config = p.kernel.str();
  report.ctas = p.ctas;
  report.threads = p.threads;
  report.seconds = seconds.count();
  report.instructions = result.counters.table();
  return report;
}

}  // namespace fastgemm
