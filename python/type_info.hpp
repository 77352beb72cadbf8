// What is known of a Python type that may be an array: looked up once, then found by its address.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>

#include "dlpack.hpp"

namespace fastgemm::python {

enum class Framework : std::uint8_t { numpy, torch, cupy, jax, other };

struct TypeInfo {
  PyTypeObject* type = nullptr;
  Framework framework = Framework::other;
  const dlpack::ExchangeApi* api = nullptr;  // null: arrays of this type speak __dlpack__
  const char* refusal = nullptr;             // why arrays of this type cannot be read
  bool plain = false;   // torch.Tensor or Parameter itself: results are torch.Tensor
  bool traced = false;  // refused as memory, but its framework can compute with it
};

// The caller holds the GIL. Throws PythonError.
TypeInfo type_info(PyObject* object);

std::string type_name(PyObject* object);  // "numpy.ndarray"

}  // namespace fastgemm::python
