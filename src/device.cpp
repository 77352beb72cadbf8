// The driver's devices: what they are, and their contexts.
#include <array>
#include <atomic>
#include <mutex>

#include "driver.hpp"
#include "fastgemm/error.hpp"
#include "fastgemm/gemm.hpp"
#include "hardware_internal.hpp"
#include "log_internal.hpp"

namespace fastgemm {
namespace {

int count_devices() {
  int count = 0;
  check(driver().device_get_count(&count), "cuDeviceGetCount");
  return count;
}

CUdevice device_handle(int ordinal) {
  if (const int count = count_devices(); ordinal < 0 || ordinal >= count)
    throw DeviceError("there is no device " + std::to_string(ordinal) + ": the driver shows " +
                      std::to_string(count) + (count == 1 ? " GPU, number 0" : " GPUs, from 0"));
  CUdevice device = 0;
  check(driver().device_get(&device, ordinal), "cuDeviceGet", "device " + std::to_string(ordinal));
  return device;
}

int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  check(driver().device_get_attribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

double dram_gbps(CUdevice device) {
  // Two transfers a clock; kHz * bits is 1/8e-6 of a GB/s.
  return 2.0 * attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) *
         attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8e6;
}

// The table's row, with what the device says of itself in its place. Attributes that an
// integrated or virtual GPU leaves at 0 stay the table's.
HardwareSpec ask_device(int ordinal) {
  const CUdevice device = device_handle(ordinal);
  char name[256] = {};
  check(driver().device_get_name(name, sizeof name - 1, device), "cuDeviceGetName");
  const int cc = 10 * attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                 attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  HardwareSpec spec{};
  try {
    spec.arch = arch_of_device(cc, name);
  } catch (const InvalidValue& error) {
    throw DeviceError("device " + std::to_string(ordinal) + " (" + name + "): " + error.what());
  }
  const HardwareSpec* card = card_by_device_name(name);
  const HardwareSpec fallback = card ? *card : hardware(arch_name(cc));
  const auto ask = [device](CUdevice_attribute which, int otherwise) {
    const int value = attribute(device, which);
    return value > 0 ? value : otherwise;
  };

  ArchSpec& arch = spec.arch;
  arch.shared_per_sm =
      ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, arch.shared_per_sm);
  arch.shared_per_block =
      ask(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, arch.shared_per_block);
  arch.shared_reserved =
      ask(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, arch.shared_reserved);
  arch.registers_per_sm =
      ask(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, arch.registers_per_sm);
  arch.warps_per_sm =
      ask(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 32 * arch.warps_per_sm) / 32;
  arch.ctas_per_sm = ask(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, arch.ctas_per_sm);

  spec.name = name;
  spec.sms = ask(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, fallback.sms);
  // The cost models are fitted with the rates of a card's row; a driver names a clock above those
  // that products run at.
  const int khz = card ? 0 : ask(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0);
  spec.clock_ghz = khz ? khz * 1e-6 : fallback.clock_ghz;
  const int l2 = ask(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 0);
  spec.l2_bytes = l2 ? l2 : fallback.l2_bytes;
  const double measured = card ? 0.0 : dram_gbps(device);
  spec.dram_gbps = measured > 0 ? measured : fallback.dram_gbps;
  spec.device = ordinal;
  return spec;
}

constexpr std::size_t max_devices = 256;
std::array<std::atomic<const DeviceContext*>, max_devices> contexts{};
std::atomic<int> known_end{0};  // one past the last of them; written under the lock

}  // namespace

std::vector<HardwareSpec> devices() {
  std::vector<HardwareSpec> found;
  int count = 0;
  try {
    count = count_devices();
  } catch (const DeviceError&) {
    return found;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    try {
      found.push_back(ask_device(ordinal));
    } catch (const DeviceError& error) {
      log_info(std::string("passed over: ") + error.what());
    }
  }
  return found;
}

const DeviceContext& device_context(int ordinal) {
  const bool in_range = ordinal >= 0 && ordinal < static_cast<int>(max_devices);
  if (in_range) {
    if (const auto* known = contexts[ordinal].load(std::memory_order_acquire)) return *known;
  }
  static auto& mutex = *new std::mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (in_range) {
    if (const auto* known = contexts[ordinal].load(std::memory_order_acquire)) return *known;
  }
  DeviceContext device{ordinal, nullptr, ask_device(ordinal)};
  check(driver().primary_ctx_retain(&device.context, device_handle(ordinal)),
        "cuDevicePrimaryCtxRetain",
        "device " + std::to_string(ordinal) + " (" + device.hardware.name + ")");
  const auto* created = new DeviceContext(std::move(device));
  contexts[ordinal].store(created, std::memory_order_release);
  if (ordinal >= known_end) known_end.store(ordinal + 1, std::memory_order_release);
  return *created;
}

int device_with_context(CUcontext context) {
  const int end = known_end.load(std::memory_order_acquire);
  for (int ordinal = 0; ordinal < end; ++ordinal) {
    const DeviceContext* known = contexts[ordinal].load(std::memory_order_acquire);
    if (known && known->context == context) return ordinal;
  }
  return -1;
}

int current_device() {
  CUcontext context = nullptr;
  check(driver().ctx_get_current(&context), "cuCtxGetCurrent");
  if (!context) return 0;
  if (const int known = device_with_context(context); known >= 0) return known;
  CUdevice device = 0;
  check(driver().ctx_get_device(&device), "cuCtxGetDevice");
  return device;
}

ScopedContext::ScopedContext(const DeviceContext& device) {
  CUcontext current = nullptr;
  check(driver().ctx_get_current(&current), "cuCtxGetCurrent");
  if (current == device.context) return;
  check(driver().ctx_push_current(device.context), "cuCtxPushCurrent");
  pushed_ = true;
}

ScopedContext::~ScopedContext() {
  CUcontext popped = nullptr;
  if (pushed_) driver().ctx_pop_current(&popped);
}

RelaxedCapture::RelaxedCapture() {
  check(driver().exchange_capture_mode(&mode_), "cuThreadExchangeStreamCaptureMode");
}

RelaxedCapture::~RelaxedCapture() { driver().exchange_capture_mode(&mode_); }

}  // namespace fastgemm
