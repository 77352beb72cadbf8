// fastgemm.emulate, and gemm() of host arrays where there is no GPU.
#pragma once

#include <Python.h>

#include "call.hpp"
#include "fastgemm/emulate.hpp"

namespace fastgemm::python {

// The function emulate of the extension module; a new reference.
PyObject* make_emulate_function(PyObject* module);

// Whether a call is for the emulator: its arrays are on the host, and there is no GPU. Says so
// once, as a RuntimeWarning. Throws PythonError.
bool emulates_instead(const Call& call);

// Computes all products of a call. Throws what emulate() throws.
EmulatorReport emulate_call(const Call& call, const HardwareSpec& hardware,
                            const EmulatorOptions& options = {});

// The hardware that `object` names or is; sm_80 where it is null. Defined by the bindings. Throws
// InvalidValue, InvalidType.
HardwareSpec hardware_in(PyObject* object);

// A fastgemm.EmulatorReport; a new reference. Defined by the bindings.
PyObject* report_object(const EmulatorReport& report);

}  // namespace fastgemm::python
