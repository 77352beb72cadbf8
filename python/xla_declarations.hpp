// Our own declarations of XLA's FFI, its C interface for custom calls; tests/cpp/xla_check.cpp
// compares them to jaxlib's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fastgemm::xla {

// The interface only grows, and each structure says its size: the parts declared here are those of
// every minor version up to this one.
constexpr int major_version = 0, minor_version = 3;

struct Error;             // XLA's own; null is success
struct ExecutionContext;  // of one execution

enum class ExtensionType { metadata = 1 };

struct Extension {
  std::size_t size;
  ExtensionType type;
  Extension* next;
};

struct ApiVersion {
  std::size_t size;
  Extension* extensions;
  int major, minor;
};

enum class ErrorCode {
  unknown = 2,
  invalid_argument = 3,
  failed_precondition = 9,
};

struct ErrorCreateArgs {
  std::size_t size;
  Extension* extensions;
  const char* message;
  ErrorCode code;
};

struct ErrorDestroyArgs {
  std::size_t size;
  Extension* extensions;
  Error* error;
};

struct StreamGetArgs {
  std::size_t size;
  Extension* extensions;
  ExecutionContext* context;
  void* stream;  // out: a CUstream
};

struct Api {
  std::size_t size;
  Extension* extensions;
  ApiVersion version;
  const void* internal;
  Error* (*error_create)(ErrorCreateArgs*);
  void (*error_get_message)(void*);
  void (*error_destroy)(ErrorDestroyArgs*);
  Error* (*handler_register)(void*);
  Error* (*stream_get)(StreamGetArgs*);
};

enum class DataType { f16 = 10, f32 = 11, bf16 = 16, s32 = 4, s64 = 5, pred = 1 };

struct Buffer {
  std::size_t size;
  Extension* extensions;
  DataType type;
  void* data;
  std::int64_t rank;
  std::int64_t* extents;
};

enum class AttributeType { array = 1, dictionary = 2, scalar = 3, string = 4 };

struct ByteSpan {
  const char* data;
  std::size_t size;
};

struct Scalar {
  DataType type;
  void* value;
};

// Of arguments and of results, which are all buffers.
struct Buffers {
  std::size_t size;
  Extension* extensions;
  std::int64_t count;
  int* types;
  void** buffers;
};

struct Attributes {
  std::size_t size;
  Extension* extensions;
  std::int64_t count;
  AttributeType* types;
  ByteSpan** names;
  void** values;
};

struct CallFrame {
  std::size_t size;
  Extension* extensions;
  const Api* api;
  ExecutionContext* context;
  int stage;
  Buffers arguments;
  Buffers results;
  Attributes attributes;
};

// Launches always the same work, which may be captured into a CUDA graph.
constexpr std::uint32_t command_buffer_compatible = 1;

struct Metadata {
  std::size_t size;
  ApiVersion version;
  std::uint32_t traits;
};

struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

using Handler = Error*(CallFrame*);

}  // namespace fastgemm::xla
