// Memory of a GPU and waiting for it, for callers that have no CUDA runtime of their own.
#include "fastgemm/device_memory.hpp"

#include "driver.hpp"

namespace fastgemm {

void* allocate_on_device(std::size_t bytes, int device) {
  ScopedContext scope(device_context(device));
  CUdeviceptr memory = 0;
  check(driver().mem_alloc(&memory, bytes), "cuMemAlloc",
        std::to_string(bytes) + " bytes on device " + std::to_string(device));
  return reinterpret_cast<void*>(memory);
}

void free_on_device(void* memory, int device) noexcept {
  if (!memory) return;
  try {
    ScopedContext scope(device_context(device));
    driver().mem_free(reinterpret_cast<CUdeviceptr>(memory));
  } catch (const Error&) {
    return;
  }
}

int device_of(Stream stream) {
  CUcontext context = nullptr;
  check(driver().stream_get_ctx(stream, &context), "cuStreamGetCtx");
  if (const int known = device_with_context(context); known >= 0) return known;
  check(driver().ctx_push_current(context), "cuCtxPushCurrent");
  CUdevice device = 0;
  const CUresult result = driver().ctx_get_device(&device);
  driver().ctx_pop_current(&context);
  check(result, "cuCtxGetDevice");
  return device;
}

void synchronize(Stream stream, int device) {
  ScopedContext scope(device_context(device));
  check(driver().stream_synchronize(stream), "cuStreamSynchronize",
        "device " + std::to_string(device));
}

}  // namespace fastgemm
