// The parts of the extension module that stand in files of their own.
#pragma once

#include <Python.h>

namespace fastgemm::python {

void add_epilogue_class(PyObject* module);
void add_emulator_classes(PyObject* module);

// To the logger "fastgemm", until Python exits.
void connect_log();

}  // namespace fastgemm::python
