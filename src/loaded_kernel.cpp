// Loads kernels, keeps the recently used ones, unloads the others when nothing can be running them.
#include "loaded_kernel.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "codegen.hpp"
#include "compiler.hpp"
#include "fastgemm/error.hpp"
#include "log_internal.hpp"

namespace fastgemm {
namespace {

using LoadedCache = LruCache<KernelConfig, LoadedKernel, KernelConfigHash>;

// Modules whose kernels nobody holds. One synchronisation serves many of them.
struct Retired {
  const DeviceContext* device;
  CUmodule module;
};
constexpr std::size_t most_retired = 16;

std::size_t capacity_from_environment() {
  const char* setting = std::getenv("FASTGEMM_CACHE_KERNELS");
  const long value = setting ? std::strtol(setting, nullptr, 10) : 0;
  return value > 0 ? static_cast<std::size_t>(value) : 256;
}

struct State {
  std::mutex mutex;
  const std::size_t capacity = capacity_from_environment();
  std::map<int, LoadedCache> caches;  // by device
  std::vector<Retired> retired;
};

// Never destroyed: at exit the driver may be gone before the last kernel is.
State& state() {
  static auto& state = *new State;
  return state;
}

LoadedCache& cache_of(int device) {
  State& s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  return s.caches.try_emplace(device, s.capacity).first->second;
}

// The deleter of every kernel. It runs anywhere, in a capture too, so that it calls no driver.
void retire(LoadedKernel* kernel) {
  if (kernel->module && !kernel->captured) {
    State& s = state();
    std::lock_guard<std::mutex> lock(s.mutex);
    s.retired.push_back({&kernel->device, kernel->module});
  }
  delete kernel;
}

void unload(const DeviceContext& device, const std::vector<CUmodule>& modules) {
  const ScopedContext scope(device);
  const RelaxedCapture relaxed;
  check(driver().ctx_synchronize(), "cuCtxSynchronize");
  for (CUmodule module : modules) check(driver().module_unload(module), "cuModuleUnload");
}

std::string describe(const CompiledKernel& kernel, const Plan& plan, const DeviceContext& device) {
  return "kernel " + kernel.name + " (" + plan.kernel.str() + "; " + kernel.target + " by NVRTC " +
         kernel.nvrtc_version + ", " + std::to_string(kernel.registers) + " registers, " +
         std::to_string(kernel.shared_bytes) + " bytes of shared memory) on device " +
         std::to_string(device.ordinal) + " (" + device.hardware.name + ")";
}

std::shared_ptr<LoadedKernel> load(const Plan& plan, const DeviceContext& device) {
  std::shared_ptr<const CompiledKernel> compiled = compile(plan);
  const auto start = std::chrono::steady_clock::now();
  const DriverApi& api = driver();
  const ScopedContext scope(device);
  const RelaxedCapture relaxed;
  std::shared_ptr<LoadedKernel> kernel(new LoadedKernel{device, std::move(compiled)}, retire);
  const CompiledKernel& code = *kernel->compiled;
  const std::string context = describe(code, plan, device);
  kernel->threads = plan.threads;
  kernel->dynamic_shared_bytes = plan.shared_bytes;
  check(api.module_load_data(&kernel->module, code.cubin.data()), "cuModuleLoadData", context);
  check(api.module_get_function(&kernel->function, kernel->module, code.name.c_str()),
        "cuModuleGetFunction", context);
  if (plan.kernel.repack_a || plan.kernel.repack_b)
    check(api.module_get_function(&kernel->repack, kernel->module,
                                  repack_kernel_name(plan.kernel).c_str()),
          "cuModuleGetFunction", context);
  if (plan.kernel.finishes_apart())
    check(api.module_get_function(&kernel->reduce, kernel->module,
                                  reduce_kernel_name(plan.kernel).c_str()),
          "cuModuleGetFunction", context);
  check(api.func_set_attribute(kernel->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               plan.shared_bytes),
        "cuFuncSetAttribute", context);
  // All of an SM's memory as shared memory: the next kernel finds room beside this one.
  if (plan.kernel.family == Family::sm90)
    check(api.func_set_attribute(kernel->function,
                                 CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100),
          "cuFuncSetAttribute", context);
  check(api.occupancy(&kernel->occupancy, kernel->function, plan.threads,
                      static_cast<std::size_t>(plan.shared_bytes)),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor", context);
  if (kernel->occupancy < 1)
    throw DeviceError("no CTA of " + context + " with " + std::to_string(plan.threads) +
                      " threads fits on an SM");
  if (verbose()) {
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    char time[32];
    std::snprintf(time, sizeof time, "%.1f ms", elapsed.count());
    log_info("loaded: " + context + ": occupancy " + std::to_string(kernel->occupancy) +
             " CTAs per SM, " + std::to_string(code.spill_bytes) + " bytes spilled, " + time);
  }
  return kernel;
}

[[noreturn]] void refuse_cold(const Plan& plan, const DeviceContext& device, Effort effort) {
  throw ColdCallError(
      "the kernel of " + describe(plan.problem) + " (" + plan.kernel.str() + ") " +
      (effort == Effort::none
           ? "is not loaded, and a stream that is being captured into a CUDA graph must not wait "
             "for that. The capture is as it was before this call"
           : "is not compiled, and strict mode (FASTGEMM_STRICT) compiles none during a call") +
      ". Warm up first: make the same call once, or fastgemm.prepare() (C++: PreparedGemm) for the "
      "same operands, on device " +
      std::to_string(device.ordinal));
}

}  // namespace

std::shared_ptr<LoadedKernel> load_kernel(const Plan& plan, const DeviceContext& device,
                                          Effort effort) {
  LoadedCache& cache = cache_of(device.ordinal);
  if (effort != Effort::compile) {
    if (auto kernel = cache.get(plan.kernel)) return kernel;
    if (effort == Effort::none || !is_compiled(plan)) refuse_cold(plan, device, effort);
  }
  std::shared_ptr<LoadedKernel> kernel =
      cache.get_or_create(plan.kernel, [&] { return load(plan, device); });
  bool many_retired = false;
  {
    State& s = state();
    std::lock_guard<std::mutex> lock(s.mutex);
    many_retired = s.retired.size() >= most_retired;
  }
  if (many_retired) unload_retired();
  return kernel;
}

void unload_retired() {
  State& s = state();
  std::vector<Retired> retired;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    retired.swap(s.retired);
  }
  std::map<const DeviceContext*, std::vector<CUmodule>> by_device;
  for (const Retired& one : retired) by_device[one.device].push_back(one.module);
  for (const auto& [device, modules] : by_device) {
    try {
      unload(*device, modules);
    } catch (const DeviceError& error) {
      // Another thread's capture, or a broken context: they stay loaded for good, which is safe.
      log_info(std::string("kernels that are no longer used stay loaded: ") + error.what());
    }
  }
}

LruStats loaded_kernel_stats() {
  State& s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  LruStats sum;
  sum.capacity = s.capacity;
  for (const auto& [device, cache] : s.caches) {
    const LruStats stats = cache.stats();
    sum.size += stats.size;
    sum.hits += stats.hits;
    sum.misses += stats.misses;
    sum.evictions += stats.evictions;
  }
  return sum;
}

void forget_loaded() {
  State& s = state();
  std::vector<LoadedCache*> caches;
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    for (auto& [device, cache] : s.caches) caches.push_back(&cache);
  }
  for (LoadedCache* cache : caches) cache->clear();
}

}  // namespace fastgemm
