// Compares src/cuda_declarations.hpp with CUDA's own headers; compiling this file is the test.
#include <cuda.h>
#include <nvrtc.h>

#include <cstddef>
#include <type_traits>

#include "cuda_declarations.hpp"
#include "tensor_map.hpp"

namespace {

// Our enums are types of their own: `Theirs<T>` is the CUDA type that T stands for, through
// pointers too.
template <typename T>
struct Theirs {
  using type = T;
};
template <typename T>
struct Theirs<T*> {
  using type = typename Theirs<T>::type*;
};
template <typename R, typename... Args>
struct Theirs<R (*)(Args...)> {
  using type = typename Theirs<R>::type (*)(typename Theirs<Args>::type...);
};

#define SAME_ENUM(name)           \
  template <>                     \
  struct Theirs<fastgemm::name> { \
    using type = ::name;          \
  };                              \
  static_assert(sizeof(fastgemm::name) == sizeof(::name), #name);
SAME_ENUM(CUresult)
SAME_ENUM(CUdevice_attribute)
SAME_ENUM(CUfunction_attribute)
SAME_ENUM(CUstreamCaptureStatus)
SAME_ENUM(CUstreamCaptureMode)
SAME_ENUM(CUtensorMapDataType)
SAME_ENUM(CUtensorMapInterleave)
SAME_ENUM(CUtensorMapSwizzle)
SAME_ENUM(CUtensorMapL2promotion)
SAME_ENUM(CUtensorMapFloatOOBfill)
SAME_ENUM(CUlaunchAttributeID)
SAME_ENUM(CUmemPool_attribute)
SAME_ENUM(nvrtcResult)

#define SAME_TYPE(name) static_assert(std::is_same_v<fastgemm::name, ::name>, #name);
SAME_TYPE(CUdevice)
SAME_TYPE(CUdeviceptr)
SAME_TYPE(CUcontext)
SAME_TYPE(CUfunction)
SAME_TYPE(CUmodule)
SAME_TYPE(CUstream)
SAME_TYPE(CUmemoryPool)
SAME_TYPE(CUtensorMap)
SAME_TYPE(nvrtcProgram)

#define SAME_VALUE(name) \
  static_assert(static_cast<int>(fastgemm::name) == static_cast<int>(::name), #name);
SAME_VALUE(CUDA_SUCCESS)
SAME_VALUE(CUDA_ERROR_INVALID_VALUE)
SAME_VALUE(CUDA_ERROR_OUT_OF_MEMORY)
SAME_VALUE(CUDA_ERROR_NOT_INITIALIZED)
SAME_VALUE(CUDA_ERROR_DEINITIALIZED)
SAME_VALUE(CUDA_ERROR_STUB_LIBRARY)
SAME_VALUE(CUDA_ERROR_NO_DEVICE)
SAME_VALUE(CUDA_ERROR_INVALID_DEVICE)
SAME_VALUE(CUDA_ERROR_INVALID_IMAGE)
SAME_VALUE(CUDA_ERROR_INVALID_CONTEXT)
SAME_VALUE(CUDA_ERROR_NO_BINARY_FOR_GPU)
SAME_VALUE(CUDA_ERROR_ECC_UNCORRECTABLE)
SAME_VALUE(CUDA_ERROR_INVALID_PTX)
SAME_VALUE(CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
SAME_VALUE(CUDA_ERROR_INVALID_HANDLE)
SAME_VALUE(CUDA_ERROR_ILLEGAL_ADDRESS)
SAME_VALUE(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
SAME_VALUE(CUDA_ERROR_LAUNCH_TIMEOUT)
SAME_VALUE(CUDA_ERROR_CONTEXT_IS_DESTROYED)
SAME_VALUE(CUDA_ERROR_ASSERT)
SAME_VALUE(CUDA_ERROR_HARDWARE_STACK_ERROR)
SAME_VALUE(CUDA_ERROR_ILLEGAL_INSTRUCTION)
SAME_VALUE(CUDA_ERROR_MISALIGNED_ADDRESS)
SAME_VALUE(CUDA_ERROR_INVALID_ADDRESS_SPACE)
SAME_VALUE(CUDA_ERROR_INVALID_PC)
SAME_VALUE(CUDA_ERROR_LAUNCH_FAILED)
SAME_VALUE(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
SAME_VALUE(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)
SAME_VALUE(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)
SAME_VALUE(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)
SAME_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
SAME_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)
SAME_VALUE(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)
SAME_VALUE(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
SAME_VALUE(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
SAME_VALUE(CU_STREAM_CAPTURE_STATUS_NONE)
SAME_VALUE(CU_STREAM_CAPTURE_STATUS_ACTIVE)
SAME_VALUE(CU_STREAM_CAPTURE_STATUS_INVALIDATED)
SAME_VALUE(CU_STREAM_CAPTURE_MODE_GLOBAL)
SAME_VALUE(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
SAME_VALUE(CU_STREAM_CAPTURE_MODE_RELAXED)
SAME_VALUE(CU_STREAM_DEFAULT)
SAME_VALUE(CU_STREAM_NON_BLOCKING)
SAME_VALUE(CU_TENSOR_MAP_DATA_TYPE_FLOAT16)
SAME_VALUE(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16)
SAME_VALUE(CU_TENSOR_MAP_INTERLEAVE_NONE)
SAME_VALUE(CU_TENSOR_MAP_SWIZZLE_NONE)
SAME_VALUE(CU_TENSOR_MAP_SWIZZLE_32B)
SAME_VALUE(CU_TENSOR_MAP_SWIZZLE_64B)
SAME_VALUE(CU_TENSOR_MAP_SWIZZLE_128B)
SAME_VALUE(CU_TENSOR_MAP_L2_PROMOTION_NONE)
SAME_VALUE(CU_TENSOR_MAP_L2_PROMOTION_L2_128B)
SAME_VALUE(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
SAME_VALUE(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
SAME_VALUE(CU_MEM_ALLOCATION_TYPE_PINNED)
SAME_VALUE(CU_MEM_LOCATION_TYPE_DEVICE)
SAME_VALUE(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
SAME_VALUE(NVRTC_SUCCESS)
SAME_VALUE(NVRTC_ERROR_OUT_OF_MEMORY)
SAME_VALUE(NVRTC_ERROR_INVALID_OPTION)
SAME_VALUE(NVRTC_ERROR_COMPILATION)
SAME_VALUE(NVRTC_ERROR_BUILTIN_OPERATION_FAILURE)

static_assert(sizeof(fastgemm::TensorMap) == sizeof(::CUtensorMap) &&
              alignof(fastgemm::TensorMap) >= alignof(::CUtensorMap));

// Structures of our own with CUDA's layout.
template <>
struct Theirs<const fastgemm::CUlaunchConfig*> {
  using type = const ::CUlaunchConfig*;
};
template <>
struct Theirs<const fastgemm::CUmemPoolProps*> {
  using type = const ::CUmemPoolProps*;
};
#define SAME_MEMBER(structure, member)                                                    \
  static_assert(offsetof(fastgemm::structure, member) == offsetof(::structure, member) && \
                    sizeof(fastgemm::structure::member) == sizeof(::structure::member),   \
                #structure "::" #member);
SAME_MEMBER(CUlaunchConfig, gridDimX)
SAME_MEMBER(CUlaunchConfig, gridDimY)
SAME_MEMBER(CUlaunchConfig, gridDimZ)
SAME_MEMBER(CUlaunchConfig, blockDimX)
SAME_MEMBER(CUlaunchConfig, blockDimY)
SAME_MEMBER(CUlaunchConfig, blockDimZ)
SAME_MEMBER(CUlaunchConfig, sharedMemBytes)
SAME_MEMBER(CUlaunchConfig, hStream)
SAME_MEMBER(CUlaunchConfig, attrs)
SAME_MEMBER(CUlaunchConfig, numAttrs)
SAME_MEMBER(CUmemPoolProps, allocType)
SAME_MEMBER(CUmemPoolProps, handleTypes)
SAME_MEMBER(CUmemPoolProps, location)
static_assert(sizeof(fastgemm::CUmemPoolProps) == sizeof(::CUmemPoolProps));
SAME_MEMBER(CUlaunchAttribute, id)
SAME_MEMBER(CUlaunchAttribute, value)
SAME_MEMBER(CUlaunchAttributeValue, programmaticStreamSerializationAllowed)
static_assert(sizeof(fastgemm::CUlaunchConfig) == sizeof(::CUlaunchConfig));
static_assert(sizeof(fastgemm::CUlaunchAttribute) == sizeof(::CUlaunchAttribute));

#define SAME_DRIVER_ENTRY(name, symbol, parameters)                                           \
  static_assert(                                                                              \
      std::is_same_v<Theirs<decltype(fastgemm::DriverApi::name)>::type, decltype(&::symbol)>, \
      #symbol);
FASTGEMM_DRIVER_ENTRIES(SAME_DRIVER_ENTRY)

#define SAME_NVRTC_ENTRY(name, symbol, parameters)                                           \
  static_assert(                                                                             \
      std::is_same_v<Theirs<decltype(fastgemm::NvrtcApi::name)>::type, decltype(&::symbol)>, \
      #symbol);
FASTGEMM_NVRTC_ENTRIES(SAME_NVRTC_ENTRY)
static_assert(std::is_same_v<Theirs<decltype(fastgemm::NvrtcApi::error_string)>::type,
                             decltype(&::nvrtcGetErrorString)>);

}  // namespace
