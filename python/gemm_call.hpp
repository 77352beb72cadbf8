// fastgemm.gemm and fastgemm.linear as plain CPython functions: arrays in, problem, launch, array
// out.
#pragma once

#include <Python.h>

#include "fastgemm/plan.hpp"

namespace fastgemm::python {

// Adds the functions gemm and linear, their like that autograd is not asked about, and
// _describe_call to the extension module. Throws PythonError.
void add_gemm_functions(PyObject* module);

// The config in a fastgemm.GemmConfig, or null where `object` is something else. Defined by the
// bindings.
const GemmConfig* config_in(PyObject* object);

// A dtype by name or as a framework has it: "float32", torch.float32, numpy.float32,
// jax.numpy.float32, numpy.dtype("float32"). Throws InvalidType.
DType dtype_from(PyObject* object);

// Tells the library, once, where pip put NVRTC. Throws PythonError.
void offer_nvrtc_folders();

}  // namespace fastgemm::python
