// The parts of the extension module that are bound in files of their own.
#pragma once

#include <Python.h>

namespace fastgemm::python {

void add_emulator(PyObject* module);
void add_epilogue_class(PyObject* module);

}  // namespace fastgemm::python
