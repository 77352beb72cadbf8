// fastgemm.prepare and what it returns: a call whose arguments are read once.
#pragma once

#include <Python.h>

namespace fastgemm::python {

// The function prepare of the extension module; a new reference. Throws PythonError.
PyObject* make_prepare_function(PyObject* module);

}  // namespace fastgemm::python
