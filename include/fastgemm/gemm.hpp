// The C++ entry: what an inference engine calls. START HERE to use the library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fastgemm/error.hpp"
#include "fastgemm/export.hpp"
#include "fastgemm/hardware.hpp"
#include "fastgemm/kernel.hpp"
#include "fastgemm/log.hpp"
#include "fastgemm/plan.hpp"
#include "fastgemm/problem.hpp"

struct CUstream_st;

namespace fastgemm {

using Stream = ::CUstream_st*;  // CUstream and cudaStream_t; nullptr is the legacy default stream

// Computes the product on `device` (-1: the device of the calling thread's CUDA context) in the
// order of `stream`. All pointers are device pointers. Returns when the kernel is enqueued. The
// first call for a problem plans, compiles and loads; later ones only launch. Thread-safe. Throws
// InvalidValue, InvalidType, CompileError, DeviceError; then nothing was enqueued.
FASTGEMM_API void gemm(const GemmProblem& problem, Stream stream = nullptr,
                       const GemmConfig& config = {}, int device = -1);

// The same over host memory: copies the operands to `device`, computes, copies D back, and returns
// when D is complete. Any strides. D is only written once everything has succeeded.
FASTGEMM_API void gemm_on_host_memory(const GemmProblem& problem, const GemmConfig& config = {},
                                      int device = 0);

// The GPUs that the driver shows; empty with no driver or no GPU.
FASTGEMM_API std::vector<HardwareSpec> devices();

struct DriverInfo {
  bool available = false;
  std::string version;  // the CUDA version that the driver supports: "13.0"
  std::string reason;   // why it is not available
};
FASTGEMM_API DriverInfo driver_info();

struct CacheInfo {
  std::int64_t loaded = 0, capacity = 0;             // kernels in memory
  std::int64_t hits = 0, misses = 0, evictions = 0;  // look-ups of a kernel in memory
  std::int64_t compiles = 0, disk_hits = 0;          // where the misses were served from
  std::string disk_path;                             // empty: no usable folder, memory only
  std::int64_t disk_files = 0, disk_bytes = 0;
};
FASTGEMM_API CacheInfo cache_info();

// Unloads all kernels that nothing is running and, with `disk`, deletes the cached files.
FASTGEMM_API void clear_cache(bool disk = false);

}  // namespace fastgemm
