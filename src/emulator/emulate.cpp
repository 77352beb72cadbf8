// The emulator's pipeline: problem -> plan -> source -> host kernel -> grid -> report.
#include "fastgemm/emulate.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "codegen.hpp"
#include "emulator/host_kernel.hpp"
#include "emulator/run_grid.hpp"
#include "launch.hpp"
#include "planner.hpp"
#include "tensor_map.hpp"

namespace fastgemm {
namespace {

using emulated::Array;

struct alignas(64) EmulatedMap {
  emulated::TensorBox box;
  char rest[128 - sizeof(emulated::TensorBox)];
};
static_assert(sizeof(EmulatedMap) == sizeof(TensorMap));

EmulatedMap emulated_map(const TensorBox& from) {
  EmulatedMap map{};
  map.box.magic = emulated::TENSOR_BOX_MAGIC;
  map.box.data = static_cast<char*>(from.data);
  std::copy_n(from.extent, 4, map.box.extent);
  std::copy_n(from.stride_bytes, 3, map.box.stride_bytes);
  for (int i = 0; i < 3; ++i) map.box.box[i] = static_cast<int>(from.box[i]);
  map.box.box[3] = 1;
  map.box.element_bytes = static_cast<int>(size_of(from.dtype));
  map.box.swizzle_bytes = map.box.box[0] * map.box.element_bytes;
  return map;
}

class Run {
 public:
  Run(const Plan& plan, const EmulatorOptions& options)
      : plan_(plan), options_(options), launchable_(launchable_of(plan)) {}

  void launch(const emulated::KernelEntry& entry, const std::string& name, std::uint32_t ctas,
              int threads, int shared_bytes, int cluster, void** arguments,
              emulated::GlobalMemory memory) {
    emulated::Launch l;
    l.kernel = name;
    l.entry = &entry;
    l.ctas = ctas;
    l.threads = threads;
    l.shared_bytes = shared_bytes;
    l.cluster = cluster;
    l.early_start = plan_.kernel.dependent_launch;
    l.arguments = arguments;
    l.memory = std::move(memory);
    l.seed = options_.seed;
    counters_.add(emulated::run_grid(l, options_.workers));
    check_written(l);
  }

  const emulated::Counters& counters() const { return counters_; }
  const Launchable& launchable() const { return launchable_; }

 private:
  static void check_written(const emulated::Launch& launch) {
    for (const auto& array : launch.memory.arrays()) {
      const std::string element = array->writable() ? array->first_unwritten() : "";
      if (element.empty()) continue;
      EmulatorError::Place place;
      place.kind = "unwritten";
      place.kernel = launch.kernel;
      throw EmulatorError("unwritten: " + launch.kernel + " ended and nothing was written to " +
                              array->name() + element,
                          place);
    }
  }

  const Plan& plan_;
  const EmulatorOptions& options_;
  Launchable launchable_;
  emulated::Counters counters_;
};

void add(emulated::GlobalMemory& memory, const char* name, const MatrixView& view,
         std::int64_t batch, std::int64_t rows, std::int64_t cols, Array::Use use) {
  memory.add(std::make_unique<Array>(name, view, batch, rows, cols, use));
}

emulated::GlobalMemory inputs_of(const GemmProblem& p) {
  emulated::GlobalMemory memory;
  if (p.k == 0) return memory;
  add(memory, "A", p.a, p.batch, p.m, p.k, Array::Use::read);
  add(memory, "B", p.b, p.batch, p.k, p.n, Array::Use::read);
  return memory;
}

void add_outputs(emulated::GlobalMemory& memory, const GemmProblem& p) {
  if (p.has_c()) add(memory, "C", p.c, p.batch, p.m, p.n, Array::Use::read);
  add(memory, "D", p.d, p.batch, p.m, p.n, Array::Use::write);
}

void launch_main(Run& run, const emulated::HostKernel& kernel, const Plan& plan,
                 const GemmProblem& p, emulated::GlobalMemory memory) {
  const KernelConfig& config = plan.kernel;
  GemmParams params = params_of(run.launchable(), p);
  EmulatedMap maps[3]{};
  void* arguments[] = {&params, &maps[0], &maps[1], &maps[2]};
  if (config.family == Family::sm90) {
    maps[0] = emulated_map(tensor_box_a(p, config));
    maps[1] = emulated_map(tensor_box_b(p, config));
    maps[2] = emulated_map(tensor_box_d(p, config));
  }
  run.launch(*kernel.main, kernel_name(config), run.launchable().ctas, config.threads(),
             plan.shared_bytes, config.cluster(), arguments, std::move(memory));
}

void launch_all(Run& run, const emulated::HostKernel& kernel, const Plan& plan) {
  const KernelConfig& config = plan.kernel;
  const GemmProblem p = oriented(config, plan.problem);
  emulated::GlobalMemory memory = inputs_of(p);
  if (config.split_k == 1) {
    add_outputs(memory, p);
    return launch_main(run, kernel, plan, p, std::move(memory));
  }
  // What nothing writes to the workspace is NaN.
  std::vector<float> workspace(workspace_bytes(p, config) / sizeof(float));
  std::memset(workspace.data(), 0xff, workspace.size() * sizeof(float));
  const GemmProblem partial = partial_problem(p, workspace.data());
  const std::int64_t matrices = p.batch * config.split_k;
  add(memory, "the workspace", partial.d, matrices, p.m, p.n, Array::Use::write);
  launch_main(run, kernel, plan, partial, std::move(memory));

  emulated::GlobalMemory finish;
  add(finish, "the workspace", partial.d, matrices, p.m, workspace_pitch(p), Array::Use::read);
  add_outputs(finish, p);
  GemmParams from = params_of(run.launchable(), partial), to = params_of(run.launchable(), p);
  void* arguments[] = {&from, &to};
  run.launch(*kernel.reduce, reduce_kernel_name(config), reduce_ctas(p), REDUCE_THREADS, 0, 1,
             arguments, std::move(finish));
}

}  // namespace

EmulatorReport emulate(const GemmProblem& asked, const HardwareSpec& hardware,
                       const GemmConfig& config, const EmulatorOptions& options) {
  validate(asked);
  const GemmProblem problem = canonical(asked);
  EmulatorReport report;
  report.arch = arch_name(hardware.arch.cc);
  report.seed = options.seed;
  if (problem.batch == 0 || problem.m == 0 || problem.n == 0) return report;
  const Plan p = plan(problem, hardware, config);
  const emulated::HostKernel kernel = emulated::host_kernel(p.kernel);
  const auto start = std::chrono::steady_clock::now();
  Run run(p, options);
  launch_all(run, kernel, p);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  report.kernels.push_back(kernel_name(p.kernel));
  if (p.kernel.split_k > 1) report.kernels.push_back(reduce_kernel_name(p.kernel));
  report.config = p.kernel.str();
  report.ctas = p.ctas;
  report.threads = p.threads;
  report.seconds = seconds.count();
  report.instructions = run.counters().table();
  return report;
}

}  // namespace fastgemm
