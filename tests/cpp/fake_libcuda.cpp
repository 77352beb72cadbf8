// A libcuda.so.1 for tests of what a real one cannot be made to do here: refuse, be too old, break.
// One H200, and whatever the variables below say. It records its calls and computes nothing, unless
// fake_computes: then products are computed on the CPU, from the kernel's arguments alone.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cuda_declarations.hpp"
#include "fastgemm/device/params.cuh"

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int fake_version = 13000, fake_init = 0, fake_devices = 1, fake_synchronize = 0,
           fake_load = 0, fake_launch = 0, fake_occupancy = 2, fake_alloc = 0, fake_streams = 0,
           fake_cc = 90, fake_computes = 0, fake_capturing = 0;
EXPORT void* fake_stream = nullptr;  // of the last launch
EXPORT const char* fake_name = "NVIDIA H200";
EXPORT int fake_loads = 0, fake_unloads = 0, fake_synchronizations = 0, fake_retains = 0,
           fake_pushed = 0, fake_allocations = 0, fake_launches = 0;
EXPORT int fake_unloads_before_synchronization = 0, fake_capture_mode = 0, fake_load_mode = -1;
EXPORT char fake_image[4] = {};

namespace {
int context, module, stream;
void* current = nullptr;
bool synchronized = false;

enum class Type { f16, bf16, f32 };

float to_float(const void* data, long long i, Type type) {
  if (type == Type::f32) return static_cast<const float*>(data)[i];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(data)[i];
  if (type == Type::bf16) {
    const std::uint32_t wide = std::uint32_t{bits} << 16;
    float value;
    return std::memcpy(&value, &wide, 4), value;
  }
  const int exponent = bits >> 10 & 31;
  const float magnitude =
      exponent ? std::ldexp(1024 + (bits & 1023), exponent - 25) : std::ldexp(bits & 1023, -24);
  return bits >> 15 ? -magnitude : magnitude;
}

// Exact for values that the type can hold; tests use small integers.
void from_float(float value, void* data, long long i, Type type) {
  if (type == Type::f32) {
    static_cast<float*>(data)[i] = value;
    return;
  }
  std::uint32_t wide;
  std::memcpy(&wide, &value, 4);
  const std::uint32_t sign = wide >> 16 & 0x8000, magnitude = wide & 0x7fffffff;
  const std::uint32_t half = magnitude ? (magnitude >> 13) - (112 << 10) : 0;
  static_cast<std::uint16_t*>(data)[i] = type == Type::bf16 ? wide >> 16 : sign | half;
}

// Of epilogues it knows one: acc + an array of the operands' type.
void compute(const fastgemm::GemmParams& p, Type in, Type out, bool fused) {
  for (long long b = 0; b < p.batch; ++b)
    for (long long m = 0; m < p.m; ++m)
      for (long long n = 0; n < p.n; ++n) {
        float sum = 0;
        for (long long k = 0; k < p.k; ++k)
          sum += to_float(p.a, b * p.a_batch_stride + m * p.a_m_stride + k * p.a_k_stride, in) *
                 to_float(p.b, b * p.b_batch_stride + n * p.b_n_stride + k * p.b_k_stride, in);
        sum *= p.alpha;
        if (p.beta != 0)
          sum += p.beta *
                 to_float(p.c, b * p.c_batch_stride + m * p.c_m_stride + n * p.c_n_stride, out);
        if (fused) {
          const auto& x = static_cast<const fastgemm::FusedParams&>(p).epilogue.array[0];
          sum += to_float(x.data, b * x.batch_stride + m * x.m_stride + n * x.n_stride, in);
        }
        from_float(sum, p.d, b * p.d_batch_stride + m * p.d_m_stride + n * p.d_n_stride, out);
      }
}
}  // namespace

EXPORT int cuInit(unsigned) { return fake_init; }
// Not ours: NVRTC asks for it when it finds a driver.
EXPORT int cuGetExportTable(const void**, const void*) { return 500; }
EXPORT int cuDriverGetVersion(int* version) { return *version = fake_version, 0; }
EXPORT int cuGetErrorName(int, const char** name) { return *name = "CUDA_ERROR_FAKE", 0; }
EXPORT int cuGetErrorString(int, const char** text) { return *text = "a fake error", 0; }
EXPORT int cuDeviceGetCount(int* count) { return *count = fake_devices, 0; }
EXPORT int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
EXPORT int cuDeviceGetName(char* name, int size, int) {
  return std::strncpy(name, fake_name, size), 0;
}
EXPORT int cuDeviceGetAttribute(int* value, unsigned attribute, int) {
  switch (attribute) {
    case 75:
      *value = fake_cc / 10;
      break;
    case 76:
      *value = fake_cc % 10;
      break;
    case 16:
      *value = 131;
      break;  // SMs: one fewer than in the table
    case 13:
      *value = 1980000;
      break;  // kHz
    case 36:
      *value = 3201000;
      break;  // kHz
    case 37:
      *value = 6144;
      break;  // bits
    case 38:
      *value = 60 << 20;
      break;  // L2
    case 81:
      *value = 228 << 10;
      break;
    case 97:
      *value = 227 << 10;
      break;
    default:
      *value = 0;  // does not say
  }
  return 0;
}
EXPORT int cuDevicePrimaryCtxRetain(void** c, int) { return *c = &context, ++fake_retains, 0; }
EXPORT int cuCtxGetCurrent(void** c) { return *c = current, 0; }
EXPORT int cuCtxPushCurrent_v2(void* c) { return current = c, ++fake_pushed, 0; }
EXPORT int cuCtxPopCurrent_v2(void** c) {
  return *c = current, current = nullptr, --fake_pushed, 0;
}
EXPORT int cuCtxGetDevice(int* device) { return *device = 0, current ? 0 : 201; }
EXPORT int cuCtxSynchronize() {
  ++fake_synchronizations;
  synchronized = fake_synchronize == 0;
  return fake_synchronize;
}
EXPORT int cuModuleLoadData(void** m, const void* image) {
  std::memcpy(fake_image, image, 4);
  fake_load_mode = fake_capture_mode;
  if (fake_load) return fake_load;
  return *m = &module, ++fake_loads, 0;
}
EXPORT int cuModuleUnload(void*) {
  if (!synchronized) ++fake_unloads_before_synchronization;
  return ++fake_unloads, 0;
}
// A function is its name.
EXPORT int cuModuleGetFunction(void** f, void*, const char* name) {
  return *f = new std::string(name), 0;
}
EXPORT int cuFuncSetAttribute(void*, unsigned, int) { return 0; }
EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* ctas, void*, int, std::size_t) {
  return *ctas = fake_occupancy, 0;
}
EXPORT int cuLaunchKernelEx(const fastgemm::CUlaunchConfig* config, const std::string* function,
                            void** arguments, void**) {
  synchronized = false;
  fake_stream = config->hStream;
  const auto has = [&](const char* part) { return function->find(part) != std::string::npos; };
  const Type in = has("_bf16") ? Type::bf16 : Type::f16;
  if (fake_computes)
    compute(*static_cast<fastgemm::GemmParams*>(arguments[0]), in, has("_f32") ? Type::f32 : in,
            has("_fused"));
  return ++fake_launches, fake_launch;
}
EXPORT int cuStreamCreate(void** s, unsigned) { return *s = &stream, ++fake_streams, 0; }
EXPORT int cuStreamDestroy_v2(void*) { return --fake_streams, 0; }
EXPORT int cuStreamSynchronize(void*) { return fake_synchronize; }
EXPORT int cuStreamIsCapturing(void*, unsigned* status) { return *status = fake_capturing, 0; }
EXPORT int cuStreamGetCtx(void*, void** c) { return *c = &context, 0; }
EXPORT int cuThreadExchangeStreamCaptureMode(unsigned* mode) {
  const unsigned before = fake_capture_mode;
  fake_capture_mode = *mode;
  return *mode = before, 0;
}
EXPORT int cuMemAlloc_v2(unsigned long long* p, std::size_t bytes) {
  if (fake_alloc) return fake_alloc;
  ++fake_allocations;
  return *p = reinterpret_cast<unsigned long long>(std::calloc(bytes, 1)), 0;
}
EXPORT int cuMemFree_v2(unsigned long long p) {
  --fake_allocations;
  return std::free(reinterpret_cast<void*>(p)), 0;
}
EXPORT int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, std::size_t bytes, void*) {
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), 0;
}
EXPORT int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t bytes, void*) {
  return std::memcpy(to, reinterpret_cast<void*>(from), bytes), 0;
}
EXPORT int cuMemsetD8Async(unsigned long long to, unsigned char value, std::size_t bytes, void*) {
  return std::memset(reinterpret_cast<void*>(to), value, bytes), 0;
}
EXPORT int cuTensorMapEncodeTiled(void* map, unsigned, unsigned, void*, const void*, const void*,
                                  const void*, const void*, unsigned, unsigned, unsigned,
                                  unsigned) {
  return std::memset(map, 0, 128), 0;
}
