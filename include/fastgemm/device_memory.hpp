// Memory of a GPU and waiting for it, for callers that have no CUDA runtime of their own.
#pragma once

#include <cstddef>

#include "fastgemm/export.hpp"
#include "fastgemm/gemm.hpp"

namespace fastgemm {

// Uninitialised memory on `device`, aligned to 256 bytes. Throws DeviceError.
FASTGEMM_API void* allocate_on_device(std::size_t bytes, int device);

// Gives it back once the work that the device was given before has ended: waits for it.
FASTGEMM_API void free_on_device(void* memory, int device) noexcept;

// The device whose context a stream belongs to. Throws DeviceError.
FASTGEMM_API int device_of(Stream stream);

// Returns when everything enqueued on `stream` has ended. Throws DeviceError.
FASTGEMM_API void synchronize(Stream stream, int device);

}  // namespace fastgemm
