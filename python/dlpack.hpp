// DLPack 1.x, our own declarations: how array libraries hand tensors to each other.
#pragma once

#include <cstdint>

namespace fastgemm::dlpack {

struct Version {
  std::uint32_t major, minor;
};

enum class DeviceType : std::int32_t { cpu = 1, cuda = 2, cuda_host = 3, cuda_managed = 13 };

struct Device {
  DeviceType type;
  std::int32_t id;
};

enum class TypeCode : std::uint8_t {
  integer = 0,
  unsigned_integer = 1,
  floating = 2,
  opaque = 3,
  bfloat = 4,
  complex = 5,
  boolean = 6,
  float8_e4m3fn = 10,
  float8_e5m2 = 12,
};

struct DataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null before 1.2: packed, row-major
  std::uint64_t byte_offset;
};

// What a capsule named "dltensor" points to.
struct ManagedTensor {
  static constexpr const char* name = "dltensor";
  static constexpr const char* used_name = "used_dltensor";
  Tensor tensor;
  void* manager;
  void (*deleter)(ManagedTensor*);
};

constexpr std::uint64_t flag_read_only = 1;

// What a capsule named "dltensor_versioned" points to. Only `version` and `deleter` may be touched
// when the major version is not ours.
struct ManagedTensorVersioned {
  static constexpr const char* name = "dltensor_versioned";
  static constexpr const char* used_name = "used_dltensor_versioned";
  Version version;
  void* manager;
  void (*deleter)(ManagedTensorVersioned*);
  std::uint64_t flags;
  Tensor tensor;
};

constexpr std::uint32_t major_version = 1, minor_version = 1;

struct ExchangeApiHeader {
  Version version;
  ExchangeApiHeader* previous;
};

// Where the attribute `__dlpack_c_exchange_api__` of a type leads: a capsule "dlpack_exchange_api".
// All functions return 0 or, with a Python exception set, -1; none of them synchronises.
struct ExchangeApi {
  static constexpr const char* name = "dlpack_exchange_api";
  ExchangeApiHeader header;
  int (*allocate)(Tensor* prototype, ManagedTensorVersioned** out, void* error,
                  void (*set_error)(void* error, const char* kind, const char* message));
  int (*to_managed)(void* object, ManagedTensorVersioned** out);
  int (*to_object)(ManagedTensorVersioned* tensor, void** out);
  int (*to_tensor)(void* object,
                   Tensor* out);  // may be null; `out` is valid while `object` is held
  int (*current_stream)(DeviceType type, std::int32_t id, void** out);
};

}  // namespace fastgemm::dlpack
