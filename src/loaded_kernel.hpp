// A compiled kernel in a device's context, and the bounded cache of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "driver.hpp"
#include "fastgemm/kernel.hpp"
#include "fastgemm/plan.hpp"
#include "lru_cache.hpp"

namespace fastgemm {

struct LoadedKernel {
  const DeviceContext& device;
  std::shared_ptr<const CompiledKernel> compiled;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUfunction repack = nullptr;   // of repacked operands
  CUfunction reduce = nullptr;   // of a split K
  int threads = 0;               // per CTA
  int dynamic_shared_bytes = 0;  // per CTA; the function's limit is set to it
  int occupancy = 0;             // CTAs per SM, by the driver

  // Set by whoever launches it into a capturing stream: the graph may be replayed at any time, so
  // that the module then stays loaded for good.
  std::atomic<bool> captured{false};
};

// What a call may do for a kernel that is not loaded.
enum class Effort {
  compile,  // all that is needed
  load,     // not run NVRTC: a call with set_strict(true)
  none,     // neither load nor synchronise: the caller's stream is being captured
};

// The kernel of a plan, compiled and loaded if need be: once for each device and configuration,
// however many threads ask. Always from machine code, never from PTX. Throws CompileError,
// DeviceError, and ColdCallError where it takes more than `effort`.
std::shared_ptr<LoadedKernel> load_kernel(const Plan& plan, const DeviceContext& device,
                                          Effort effort = Effort::compile);

// A kernel that nobody holds any more may still be running: its module waits here until its context
// has been synchronised. Happens now and then while loading; this does it at once, for all devices.
void unload_retired();

LruStats loaded_kernel_stats();  // summed over devices
void forget_loaded();            // empties the cache; kernels in use live on

}  // namespace fastgemm
