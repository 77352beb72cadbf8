// How fastgemm's errors become Python exceptions.
#pragma once

#include <Python.h>

#include <exception>

namespace fastgemm::python {

// fastgemm.CompileError (.log, .source_path), fastgemm.DeviceError (.code),
// fastgemm.ColdCallError and fastgemm.EmulatorError (.kind, .kernel, .cta, .thread, .instruction,
// .address); borrowed references.
PyObject* compile_error_type();
PyObject* device_error_type();
PyObject* cold_call_error_type();
PyObject* emulator_error_type();

// Sets the Python exception that stands for the C++ one.
void set_python_error(std::exception_ptr error) noexcept;

}  // namespace fastgemm::python
