// fastgemm.gemm as a plain CPython function: arrays in, problem, launch, array out.
#pragma once

#include <Python.h>

#include "fastgemm/plan.hpp"

namespace fastgemm::python {

// The functions gemm and _describe_call of the extension module; new references.
PyObject* make_gemm_function(PyObject* module);
PyObject* make_describe_function(PyObject* module);

// The config in a fastgemm.GemmConfig, or null where `object` is something else. Defined by the
// bindings.
const GemmConfig* config_in(PyObject* object);

// A dtype by name or as a framework has it: "float32", torch.float32, numpy.float32,
// jax.numpy.float32, numpy.dtype("float32"). Throws InvalidType.
DType dtype_from(PyObject* object);

// Tells the library, once, where pip put NVRTC. Throws PythonError.
void offer_nvrtc_folders();

}  // namespace fastgemm::python
