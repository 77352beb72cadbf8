// The CUDA driver: opening it, and what its errors mean.
#include "driver.hpp"

#include <atomic>
#include <memory>
#include <mutex>

#include "dynamic_library.hpp"
#include "fastgemm/gemm.hpp"

namespace fastgemm {
namespace {

constexpr const char* library_name = "libcuda.so.1";
constexpr const char* no_driver_advice =
    "Planning and compiling work without a GPU; gemm needs an NVIDIA GPU and its driver "
    "(in a container: one started with GPU access).";

std::string describe(const DriverApi* api, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (api && api->get_error_name) api->get_error_name(result, &name);
  if (api && api->get_error_string) api->get_error_string(result, &text);
  return "error " + std::to_string(static_cast<int>(result)) + " (" +
         (name ? name : "unknown name") + (text ? std::string(": ") + text : "") + ")";
}

std::string advice(CUresult result) {
  if (is_sticky(result))
    return "This error is sticky: a kernel that ran earlier, in this or another library, broke the "
           "CUDA context of this process, and every CUDA call will fail from now on. Restart the "
           "process; CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer shows the guilty kernel.";
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "The GPU's memory is used up.";
    case CUDA_ERROR_NOT_INITIALIZED:
      return "A process that was forked after CUDA had been initialised cannot use CUDA: start "
             "workers with 'spawn' or 'forkserver'.";
    case CUDA_ERROR_DEINITIALIZED:
      return "The driver is shutting down: the process is about to exit.";
    case CUDA_ERROR_STUB_LIBRARY:
      return "The libcuda.so.1 that was found is the toolkit's stub for linking, not a driver: "
             "take the stubs folder out of LD_LIBRARY_PATH.";
    case CUDA_ERROR_NO_DEVICE:
      return "The driver shows no GPU: see nvidia-smi, CUDA_VISIBLE_DEVICES and the container's "
             "GPU "
             "access.";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "The kernel module and libcuda are of different versions: reboot, or reload the "
             "module.";
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "The driver supports CUDA " + cuda_version_text(driver_version()) +
             " and does not take this machine code: update the driver, or install an NVRTC of the "
             "driver's CUDA major (pip install nvidia-cuda-nvrtc-cu12 for 12.x).";
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_INVALID_HANDLE:
      return "fastgemm works in the device's primary context: a stream or pointer of another "
             "device or context cannot be used.";
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
      return "A stream is being captured into a CUDA graph: call gemm once with the same shapes "
             "before the capture.";
    default:
      return {};
  }
}

template <typename Function>
void require(const DynamicLibrary& library, const char* symbol, Function*& entry) {
  if (!library.find(symbol, entry))
    throw DeviceError("the CUDA driver " + library.path() + " is too old: it has no " + symbol +
                      "; fastgemm needs a driver for CUDA " +
                      cuda_version_text(oldest_driver_version) + " or later");
}

DynamicLibrary open_library() {
  std::string error;
  DynamicLibrary library = DynamicLibrary::open(library_name, &error);
  if (!library)
    throw DeviceError("there is no CUDA driver on this machine (" + error + "). " +
                      no_driver_advice);
  return library;
}

// Not through check(): driver() is not there yet to explain the error.
void check_start(const DriverApi& api, CUresult result, const char* call) {
  if (result != CUDA_SUCCESS)
    throw DeviceError(std::string("the CUDA driver cannot be used: ") + call + " gave " +
                          describe(&api, result) + ". " + advice(result),
                      static_cast<int>(result));
}

std::unique_ptr<const DriverApi> start_driver() {
  const DynamicLibrary library = open_library();
  auto api = std::make_unique<DriverApi>();
  require(library, "cuDriverGetVersion", api->driver_get_version);
  int version = 0;
  check_start(*api, api->driver_get_version(&version), "cuDriverGetVersion");
  if (version < oldest_driver_version)
    throw DeviceError("the CUDA driver is too old: it supports CUDA " + cuda_version_text(version) +
                      ", fastgemm needs " + cuda_version_text(oldest_driver_version) +
                      " or later. Update the driver.");
#define FASTGEMM_FIND(name, symbol, parameters) require(library, #symbol, api->name);
  FASTGEMM_DRIVER_ENTRIES(FASTGEMM_FIND)
#undef FASTGEMM_FIND
  check_start(*api, api->init(0), "cuInit");
  int count = 0;
  check_start(*api, api->device_get_count(&count), "cuDeviceGetCount");
  if (count == 0) check_start(*api, CUDA_ERROR_NO_DEVICE, "cuDeviceGetCount");
  return api;
}

std::atomic<const DriverApi*> started{nullptr};

}  // namespace

const DriverApi& driver() {
  if (const DriverApi* api = started.load(std::memory_order_acquire)) return *api;
  static auto& mutex = *new std::mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (const DriverApi* api = started.load(std::memory_order_acquire)) return *api;
  const DriverApi* api = start_driver().release();
  started.store(api, std::memory_order_release);
  return *api;
}

int driver_version() {
  const DynamicLibrary library = DynamicLibrary::open(library_name);
  CUresult (*get_version)(int*) = nullptr;
  int version = 0;
  if (!library || !library.find("cuDriverGetVersion", get_version) ||
      get_version(&version) != CUDA_SUCCESS)
    return 0;
  return version;
}

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

bool is_sticky(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
}

void throw_driver_error(CUresult result, const char* call, const std::string& context) {
  std::string what =
      std::string(call) + " gave " + describe(started.load(std::memory_order_acquire), result);
  if (!context.empty()) what += " for " + context;
  if (const std::string help = advice(result); !help.empty()) what += ". " + help;
  throw DeviceError(what, static_cast<int>(result));
}

DriverInfo driver_info() {
  DriverInfo info;
  if (const int version = driver_version()) info.version = cuda_version_text(version);
  try {
    driver();
    info.available = true;
  } catch (const DeviceError& error) {
    info.reason = error.what();
  }
  return info;
}

}  // namespace fastgemm
