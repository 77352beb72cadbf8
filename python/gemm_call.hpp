// fastgemm.gemm as a plain CPython function: arrays in, problem, launch, array out.
#pragma once

#include <Python.h>

#include "fastgemm/emulate.hpp"
#include "fastgemm/plan.hpp"

namespace fastgemm::python {

// The functions gemm, emulate and _describe_call of the extension module; new references.
PyObject* make_gemm_function(PyObject* module);
PyObject* make_emulate_function(PyObject* module);
PyObject* make_describe_function(PyObject* module);

// The config in a fastgemm.GemmConfig, or null where `object` is something else. Defined by the
// bindings.
const GemmConfig* config_in(PyObject* object);

// The hardware that `object` names or is; sm_80 where it is null. Defined by the bindings. Throws
// InvalidValue, InvalidType.
HardwareSpec hardware_in(PyObject* object);

// A fastgemm.EmulatorReport; a new reference. Defined by the bindings.
PyObject* report_object(const EmulatorReport& report);

// A dtype by name or as a framework has it: "float32", torch.float32, numpy.float32,
// jax.numpy.float32, numpy.dtype("float32"). Throws InvalidType.
DType dtype_from(PyObject* object);

// Tells the library, once, where pip put NVRTC. Throws PythonError.
void offer_nvrtc_folders();

}  // namespace fastgemm::python
