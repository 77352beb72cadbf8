// The C++ entry: what an inference engine calls. START HERE to use the library.
#pragma once

#include <cstdint>
#include <memory>
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
// InvalidValue, InvalidType, CompileError, DeviceError, and ColdCallError where `stream` is being
// captured and the kernel is not loaded; then nothing was enqueued.
FASTGEMM_API void gemm(const GemmProblem& problem, Stream stream = nullptr,
                       const GemmConfig& config = {}, int device = -1);

// All that gemm() would do for this problem but the launch, so that the next call only launches.
FASTGEMM_API void warm_up(const GemmProblem& problem, const GemmConfig& config = {},
                          int device = -1);

// gemm() over host memory: copies the operands to `device`, computes, copies D back, and returns
// when D is complete. Any strides. D is only written once everything has succeeded.
FASTGEMM_API void gemm_on_host_memory(const GemmProblem& problem, const GemmConfig& config = {},
                                      int device = 0);

// A product made ready once: checked, planned, compiled and loaded. A launch costs little more than
// the driver's own. Its kernel stays loaded as long as it lives. Copies are cheap; launches of one
// object from several threads are fine.
class FASTGEMM_API PreparedGemm {
 public:
  // `device` and errors as for gemm(); compiles in strict mode too.
  explicit PreparedGemm(const GemmProblem& problem, const GemmConfig& config = {}, int device = -1);

  // Enqueues the product in the order of `stream`, which may be under capture. Throws DeviceError.
  void launch(Stream stream = nullptr) const;

  // The same extents, strides and dtypes over other memory from now on; with a fusion, also of the
  // arrays of `fusion` and with its numbers, of the same expression. Throws InvalidValue where an
  // address is aligned worse than what was prepared for, or D overlaps an operand.
  void rebind(void* a, void* b, void* c, void* d, std::shared_ptr<const Fusion> fusion = nullptr);

 private:
  struct State;
  std::shared_ptr<const State> state_;  // null: an empty product
};

// Whether a call that would have to run NVRTC throws ColdCallError instead: for serving, after the
// warm-up. Off unless FASTGEMM_STRICT=1. compile(), warm_up() and
// PreparedGemm compile nevertheless.
FASTGEMM_API void set_strict(bool on);
FASTGEMM_API bool strict();

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
