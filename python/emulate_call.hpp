// fastgemm.emulate, and what gemm() does with host arrays where there is no GPU.
#pragma once

#include <Python.h>

#include "call.hpp"
#include "fastgemm/emulate.hpp"

namespace fastgemm::python {

// The function emulate of the extension module; a new reference.
PyObject* make_emulate_function(PyObject* module);

// Whether the operands are on the host and there is no GPU to copy them to, which the first such
// call warns of. Throws PythonError.
bool emulates_instead(const Call& call);

// Computes all products of the call. Throws what fastgemm::emulate() does.
EmulatorReport emulate_all(const Call& call, const HardwareSpec& hardware,
                           const EmulatorOptions& options);

// The hardware that `object` names or is; sm_80 where it is null. Defined by the bindings. Throws
// InvalidValue, InvalidType.
HardwareSpec hardware_in(PyObject* object);

// A fastgemm.EmulatorReport; a new reference. Defined by the bindings.
PyObject* report_object(const EmulatorReport& report);

}  // namespace fastgemm::python
