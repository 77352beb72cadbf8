// Compile-time check of our DLPack declarations against the real header (from the apache-tvm-ffi
// wheel).
#include <dlpack/dlpack.h>

#include <cstddef>

#include "dlpack.hpp"

namespace ours = fastgemm::dlpack;

#define SAME_LAYOUT(a, b) static_assert(sizeof(a) == sizeof(b) && alignof(a) == alignof(b), #b)
#define SAME_OFFSET(a, field, b, real_field) \
  static_assert(offsetof(a, field) == offsetof(b, real_field), #b "." #real_field)
#define SAME_VALUE(a, b) static_assert(static_cast<long>(a) == static_cast<long>(b), #b)

SAME_VALUE(ours::major_version, DLPACK_MAJOR_VERSION);
static_assert(ours::minor_version <= DLPACK_MINOR_VERSION, "minor version");
SAME_VALUE(ours::DeviceType::cpu, kDLCPU);
SAME_VALUE(ours::DeviceType::cuda, kDLCUDA);
SAME_VALUE(ours::DeviceType::cuda_host, kDLCUDAHost);
SAME_VALUE(ours::DeviceType::cuda_managed, kDLCUDAManaged);
SAME_VALUE(ours::TypeCode::integer, kDLInt);
SAME_VALUE(ours::TypeCode::unsigned_integer, kDLUInt);
SAME_VALUE(ours::TypeCode::floating, kDLFloat);
SAME_VALUE(ours::TypeCode::opaque, kDLOpaqueHandle);
SAME_VALUE(ours::TypeCode::bfloat, kDLBfloat);
SAME_VALUE(ours::TypeCode::complex, kDLComplex);
SAME_VALUE(ours::TypeCode::boolean, kDLBool);
SAME_VALUE(ours::flag_read_only, DLPACK_FLAG_BITMASK_READ_ONLY);

SAME_LAYOUT(ours::Version, DLPackVersion);
SAME_LAYOUT(ours::Device, DLDevice);
SAME_OFFSET(ours::Device, type, DLDevice, device_type);
SAME_OFFSET(ours::Device, id, DLDevice, device_id);
SAME_LAYOUT(ours::DataType, DLDataType);
SAME_OFFSET(ours::DataType, code, DLDataType, code);
SAME_OFFSET(ours::DataType, bits, DLDataType, bits);
SAME_OFFSET(ours::DataType, lanes, DLDataType, lanes);

SAME_LAYOUT(ours::Tensor, DLTensor);
SAME_OFFSET(ours::Tensor, data, DLTensor, data);
SAME_OFFSET(ours::Tensor, device, DLTensor, device);
SAME_OFFSET(ours::Tensor, ndim, DLTensor, ndim);
SAME_OFFSET(ours::Tensor, dtype, DLTensor, dtype);
SAME_OFFSET(ours::Tensor, shape, DLTensor, shape);
SAME_OFFSET(ours::Tensor, strides, DLTensor, strides);
SAME_OFFSET(ours::Tensor, byte_offset, DLTensor, byte_offset);

SAME_LAYOUT(ours::ManagedTensor, DLManagedTensor);
SAME_OFFSET(ours::ManagedTensor, tensor, DLManagedTensor, dl_tensor);
SAME_OFFSET(ours::ManagedTensor, manager, DLManagedTensor, manager_ctx);
SAME_OFFSET(ours::ManagedTensor, deleter, DLManagedTensor, deleter);

SAME_LAYOUT(ours::ManagedTensorVersioned, DLManagedTensorVersioned);
SAME_OFFSET(ours::ManagedTensorVersioned, version, DLManagedTensorVersioned, version);
SAME_OFFSET(ours::ManagedTensorVersioned, manager, DLManagedTensorVersioned, manager_ctx);
SAME_OFFSET(ours::ManagedTensorVersioned, deleter, DLManagedTensorVersioned, deleter);
SAME_OFFSET(ours::ManagedTensorVersioned, flags, DLManagedTensorVersioned, flags);
SAME_OFFSET(ours::ManagedTensorVersioned, tensor, DLManagedTensorVersioned, dl_tensor);

SAME_LAYOUT(ours::ExchangeApiHeader, DLPackExchangeAPIHeader);
SAME_OFFSET(ours::ExchangeApiHeader, version, DLPackExchangeAPIHeader, version);
SAME_OFFSET(ours::ExchangeApiHeader, previous, DLPackExchangeAPIHeader, prev_api);
SAME_LAYOUT(ours::ExchangeApi, DLPackExchangeAPI);
SAME_OFFSET(ours::ExchangeApi, header, DLPackExchangeAPI, header);
SAME_OFFSET(ours::ExchangeApi, allocate, DLPackExchangeAPI, managed_tensor_allocator);
SAME_OFFSET(ours::ExchangeApi, to_managed, DLPackExchangeAPI,
            managed_tensor_from_py_object_no_sync);
SAME_OFFSET(ours::ExchangeApi, to_object, DLPackExchangeAPI, managed_tensor_to_py_object_no_sync);
SAME_OFFSET(ours::ExchangeApi, to_tensor, DLPackExchangeAPI, dltensor_from_py_object_no_sync);
SAME_OFFSET(ours::ExchangeApi, current_stream, DLPackExchangeAPI, current_work_stream);
