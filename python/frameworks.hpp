// What is asked of the caller's array framework: its current stream, and an array for the result.
#pragma once

#include <cstdint>

#include "fastgemm/gemm.hpp"
#include "matmul.hpp"
#include "operand.hpp"
#include "py_ref.hpp"

namespace fastgemm::python {

const char* name(Framework framework);

// The stream on which a framework works now on a device; the legacy default stream where it has no
// such notion.
Stream current_stream(const TypeInfo& type, int device);
inline Stream current_stream(const Operand& like) { return current_stream(like.type, like.device); }

// `stream=`: a handle as an integer, or an object with .cuda_stream, .ptr or __cuda_stream__.
// Throws InvalidType.
Stream stream_from(PyObject* object);

// Whether both frameworks free memory in the order of the one stream that current_stream() gives:
// only then may a call return before the product is there.
bool shares_stream(const Operand& x, const Operand& y);

// As DLPack counts: 1 is the legacy default stream, and never 0.
inline std::uintptr_t dlpack_stream(Stream stream) {
  return stream ? reinterpret_cast<std::uintptr_t>(stream) : 1;
}

// An array for the result, in the framework of `like` and on its device, to be written through
// `data` on `stream`; `explicit_stream` says that the framework does not know that stream as its
// current one.
class Result {
 public:
  Result(const Operand& like, const MatmulShape& shape, DType dtype, Stream stream,
         bool explicit_stream);

  void* data() const { return data_; }
  PyObject*
  finish();  // the array, a new reference; call it once the memory is, or will be, written

 private:
  const Operand& like_;
  void* data_ = nullptr;
  Ref object_;
  bool to_jax_ = false;
};

}  // namespace fastgemm::python
