// What a call fuses with its product: named parts, or an Epilogue object.
#pragma once

#include <Python.h>

#include <memory>
#include <string>
#include <vector>

#include "fastgemm/problem.hpp"
#include "py_ref.hpp"

namespace fastgemm::python {

// A fastgemm.Epilogue: an expression with its operands, which it keeps.
struct BoundEpilogue {
  BoundEpilogue() = default;
  BoundEpilogue(BoundEpilogue&&) = default;

  std::shared_ptr<const Epilogue> epilogue;
  std::vector<Ref> arrays;     // in the order of epilogue->arrays
  std::vector<float> numbers;  // in the order of epilogue->numbers
  GateOrder gate_order = GateOrder::interleaved;
};

// The one in a Python object, or null where it is something else. Defined by the bindings.
const BoundEpilogue* epilogue_in(PyObject* object);

// Reads an expression and the keyword arguments that go with it: real numbers by value, everything
// else as an array, which is read at the call. Throws InvalidValue, InvalidType.
BoundEpilogue bind_epilogue(const std::string& expression, PyObject* values,
                            const std::string& device_code, PyObject* gated);

// The fusion of a problem that is only planned, by an expression or a fastgemm.Epilogue: its arrays
// are packed, aligned, and of A's dtype. Throws InvalidType, InvalidValue.
// A gated one makes the result narrower.
void set_planned_fusion(PyObject* epilogue, GemmProblem& problem);

}  // namespace fastgemm::python
