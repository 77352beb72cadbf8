// The functions of fastgemm/_frameworks.py: what is said to array frameworks in Python.
#pragma once

#include <Python.h>

#include <string>
#include <unordered_map>

#include "py_ref.hpp"

namespace fastgemm::python {

// Looked up once; a borrowed reference.
inline PyObject* helper(const std::string& name) {
  static auto& functions = *new std::unordered_map<std::string, PyObject*>;
  PyObject*& function = functions[name];
  if (!function) {
    Ref module = Ref::steal(PyImport_ImportModule("fastgemm._frameworks"));
    function = attribute(module.get(), name.c_str()).release();
  }
  return function;
}

}  // namespace fastgemm::python
