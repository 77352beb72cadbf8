// The CUDA driver, opened on first use: its entries, its devices and its errors.
#pragma once

#include <string>

#include "cuda_declarations.hpp"
#include "fastgemm/hardware.hpp"

namespace fastgemm {

constexpr int oldest_driver_version = 12000;  // cuDriverGetVersion: 1000 * major + 10 * minor

// The initialised driver. Throws DeviceError when there is none, it is too old or shows no GPU; a
// later call tries again.
const DriverApi& driver();

// What cuDriverGetVersion says, without initialising anything; 0 where there is no driver.
int driver_version();

std::string cuda_version_text(int version);  // 12090 -> "12.9"

// Throws DeviceError with the call, the code's name and text, `context` (kernel, shapes, device
// ...) and what to do.
[[noreturn]] void throw_driver_error(CUresult result, const char* call, const std::string& context);

inline void check(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) throw_driver_error(result, call, {});
}
inline void check(CUresult result, const char* call, const std::string& context) {
  if (result != CUDA_SUCCESS) throw_driver_error(result, call, context);
}

// Whether the error stays with the CUDA context: all later calls fail in the same way.
bool is_sticky(CUresult result);

struct DeviceContext {
  int ordinal;
  CUcontext context;  // the primary context, which CUDA's runtime and all frameworks share; never
                      // released
  HardwareSpec hardware;
};

// Created once a device, then a look-up without lock. Throws DeviceError.
const DeviceContext& device_context(int ordinal);

// The device whose context this is, of those that device_context() has created; -1: none of them.
int device_with_context(CUcontext context);

// The device of the calling thread's CUDA context, 0 where it has none.
int current_device();

// Makes a device's context the calling thread's for a scope.
class ScopedContext {
 public:
  explicit ScopedContext(const DeviceContext& device);
  ~ScopedContext();
  ScopedContext(const ScopedContext&) = delete;
  ScopedContext& operator=(const ScopedContext&) = delete;

 private:
  bool pushed_ = false;
};

// Lets this thread load modules and allocate while some stream of the process is being captured
// into a graph.
class RelaxedCapture {
 public:
  RelaxedCapture();
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace fastgemm
