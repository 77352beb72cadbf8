// Our own declarations of the driver and NVRTC entries in use; tests/cpp/declarations_check.cpp
// compares them to CUDA's.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUctx_st;
struct CUmemPoolHandle_st;
struct CUfunc_st;
struct CUmod_st;
struct CUstream_st;
struct CUtensorMap_st;
struct _nvrtcProgram;

namespace fastgemm {

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = ::CUctx_st*;
using CUfunction = ::CUfunc_st*;
using CUmodule = ::CUmod_st*;
using CUmemoryPool = ::CUmemPoolHandle_st*;
using CUstream = ::CUstream_st*;
using CUtensorMap = ::CUtensorMap_st;  // 128 bytes, see tensor_map.hpp
using nvrtcProgram = ::_nvrtcProgram*;

enum CUresult : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_STUB_LIBRARY = 34,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_ECC_UNCORRECTABLE = 214,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
  CUDA_ERROR_INVALID_PC = 718,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
};

enum CUdevice_attribute : unsigned {
  CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,  // kHz
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,        // kHz
  CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,  // bits
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
  CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK = 111,
};

enum CUfunction_attribute : unsigned {
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
};

enum CUstreamCaptureStatus : unsigned {
  CU_STREAM_CAPTURE_STATUS_NONE = 0,
  CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
  CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
};

enum CUstreamCaptureMode : unsigned {
  CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
  CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
  CU_STREAM_CAPTURE_MODE_RELAXED = 2,
};

enum CUstream_flags : unsigned {
  CU_STREAM_DEFAULT = 0,
  CU_STREAM_NON_BLOCKING = 1,
};

enum CUtensorMapDataType : unsigned {
  CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6,
  CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9,
};

enum CUtensorMapInterleave : unsigned {
  CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
};

enum CUtensorMapSwizzle : unsigned {
  CU_TENSOR_MAP_SWIZZLE_NONE = 0,
  CU_TENSOR_MAP_SWIZZLE_32B = 1,
  CU_TENSOR_MAP_SWIZZLE_64B = 2,
  CU_TENSOR_MAP_SWIZZLE_128B = 3,
};

enum CUtensorMapL2promotion : unsigned {
  CU_TENSOR_MAP_L2_PROMOTION_NONE = 0,
  CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2,
};

enum CUtensorMapFloatOOBfill : unsigned {
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0,
};

enum nvrtcResult : unsigned {
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_OUT_OF_MEMORY = 1,
  NVRTC_ERROR_INVALID_OPTION = 5,
  NVRTC_ERROR_COMPILATION = 6,
  NVRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7,
};

enum CUmemAllocationType : unsigned { CU_MEM_ALLOCATION_TYPE_PINNED = 1 };
enum CUmemLocationType : unsigned { CU_MEM_LOCATION_TYPE_DEVICE = 1 };
enum CUmemPool_attribute : unsigned { CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4 };

struct CUmemPoolProps {
  CUmemAllocationType allocType;
  unsigned handleTypes;
  struct {
    CUmemLocationType type;
    int id;
  } location;
  void* win32SecurityAttributes;
  std::size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};

enum CUlaunchAttributeID : unsigned {
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
};

union CUlaunchAttributeValue {
  char pad[64];
  int programmaticStreamSerializationAllowed;
};

struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char pad[8 - sizeof(CUlaunchAttributeID)];
  CUlaunchAttributeValue value;
};

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute* attrs;
  unsigned numAttrs;
};

// X(name in DriverApi, exported symbol, parameters); all return CUresult.
#define FASTGEMM_DRIVER_ENTRIES(X)                                                               \
  X(init, cuInit, (unsigned flags))                                                              \
  X(driver_get_version, cuDriverGetVersion, (int* version))                                      \
  X(get_error_name, cuGetErrorName, (CUresult error, const char** name))                         \
  X(get_error_string, cuGetErrorString, (CUresult error, const char** text))                     \
  X(device_get_count, cuDeviceGetCount, (int* count))                                            \
  X(device_get, cuDeviceGet, (CUdevice * device, int ordinal))                                   \
  X(device_get_name, cuDeviceGetName, (char* name, int size, CUdevice device))                   \
  X(device_get_attribute, cuDeviceGetAttribute,                                                  \
    (int* value, CUdevice_attribute attribute, CUdevice device))                                 \
  X(primary_ctx_retain, cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))        \
  X(ctx_get_current, cuCtxGetCurrent, (CUcontext * context))                                     \
  X(ctx_push_current, cuCtxPushCurrent_v2, (CUcontext context))                                  \
  X(ctx_pop_current, cuCtxPopCurrent_v2, (CUcontext * context))                                  \
  X(ctx_get_device, cuCtxGetDevice, (CUdevice * device))                                         \
  X(ctx_synchronize, cuCtxSynchronize, ())                                                       \
  X(module_load_data, cuModuleLoadData, (CUmodule * module, const void* image))                  \
  X(module_unload, cuModuleUnload, (CUmodule module))                                            \
  X(module_get_function, cuModuleGetFunction,                                                    \
    (CUfunction * function, CUmodule module, const char* name))                                  \
  X(func_set_attribute, cuFuncSetAttribute,                                                      \
    (CUfunction function, CUfunction_attribute attribute, int value))                            \
  X(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor,                                      \
    (int* ctas, CUfunction function, int threads, std::size_t dynamic_shared_bytes))             \
  X(launch_kernel_ex, cuLaunchKernelEx,                                                          \
    (const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra))        \
  X(stream_create, cuStreamCreate, (CUstream * stream, unsigned flags))                          \
  X(stream_destroy, cuStreamDestroy_v2, (CUstream stream))                                       \
  X(stream_synchronize, cuStreamSynchronize, (CUstream stream))                                  \
  X(stream_is_capturing, cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus * status)) \
  X(stream_get_ctx, cuStreamGetCtx, (CUstream stream, CUcontext * context))                      \
  X(exchange_capture_mode, cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode))      \
  X(mem_alloc, cuMemAlloc_v2, (CUdeviceptr * pointer, std::size_t bytes))                        \
  X(mem_free, cuMemFree_v2, (CUdeviceptr pointer))                                               \
  X(mem_pool_create, cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps* properties))   \
  X(mem_pool_set_attribute, cuMemPoolSetAttribute,                                               \
    (CUmemoryPool pool, CUmemPool_attribute attribute, void* value))                             \
  X(mem_alloc_from_pool_async, cuMemAllocFromPoolAsync,                                          \
    (CUdeviceptr * pointer, std::size_t bytes, CUmemoryPool pool, CUstream stream))              \
  X(mem_free_async, cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream))                      \
  X(memcpy_htod_async, cuMemcpyHtoDAsync_v2,                                                     \
    (CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream))                      \
  X(memcpy_dtoh_async, cuMemcpyDtoHAsync_v2,                                                     \
    (void* to, CUdeviceptr from, std::size_t bytes, CUstream stream))                            \
  X(memset_d8_async, cuMemsetD8Async,                                                            \
    (CUdeviceptr to, unsigned char value, std::size_t bytes, CUstream stream))                   \
  X(tensor_map_encode_tiled, cuTensorMapEncodeTiled,                                             \
    (CUtensorMap * map, CUtensorMapDataType type, std::uint32_t rank, void* data,                \
     const std::uint64_t* extents, const std::uint64_t* stride_bytes, const std::uint32_t* box,  \
     const std::uint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,   \
     CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill))

// X(name in NvrtcApi, exported symbol, parameters); all return nvrtcResult.
#define FASTGEMM_NVRTC_ENTRIES(X)                                                   \
  X(version, nvrtcVersion, (int* major, int* minor))                                \
  X(num_supported_archs, nvrtcGetNumSupportedArchs, (int* count))                   \
  X(supported_archs, nvrtcGetSupportedArchs, (int* archs))                          \
  X(create_program, nvrtcCreateProgram,                                             \
    (nvrtcProgram * program, const char* source, const char* name, int num_headers, \
     const char* const* headers, const char* const* include_names))                 \
  X(destroy_program, nvrtcDestroyProgram, (nvrtcProgram * program))                 \
  X(compile_program, nvrtcCompileProgram,                                           \
    (nvrtcProgram program, int num_options, const char* const* options))            \
  X(ptx_size, nvrtcGetPTXSize, (nvrtcProgram program, std::size_t* size))           \
  X(ptx, nvrtcGetPTX, (nvrtcProgram program, char* ptx))                            \
  X(cubin_size, nvrtcGetCUBINSize, (nvrtcProgram program, std::size_t* size))       \
  X(cubin, nvrtcGetCUBIN, (nvrtcProgram program, char* cubin))                      \
  X(log_size, nvrtcGetProgramLogSize, (nvrtcProgram program, std::size_t* size))    \
  X(log, nvrtcGetProgramLog, (nvrtcProgram program, char* log))

#define FASTGEMM_DECLARE(name, symbol, parameters) CUresult(*name) parameters = nullptr;
struct DriverApi {
  FASTGEMM_DRIVER_ENTRIES(FASTGEMM_DECLARE)
};
#undef FASTGEMM_DECLARE

// nvrtcGetErrorString is the one entry that returns something else.
#define FASTGEMM_DECLARE(name, symbol, parameters) nvrtcResult(*name) parameters = nullptr;
struct NvrtcApi {
  FASTGEMM_NVRTC_ENTRIES(FASTGEMM_DECLARE)
  const char* (*error_string)(nvrtcResult) = nullptr;
};
#undef FASTGEMM_DECLARE

}  // namespace fastgemm
