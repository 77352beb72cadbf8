// The class fastgemm.Epilogue.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <new>

#include "docstrings.hpp"
#include "fused_call.hpp"
#include "module_parts.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace fastgemm::python {

const BoundEpilogue* epilogue_in(PyObject* object) {
  return nb::isinstance<BoundEpilogue>(object) ? nb::inst_ptr<BoundEpilogue>(object) : nullptr;
}

void add_epilogue_class(PyObject* module) {
  nb::module_ m = nb::borrow<nb::module_>(module);
  nb::class_<BoundEpilogue>(m, "Epilogue", epilogue_docstring)
      .def(
          "__init__",
          [](BoundEpilogue* self, const std::string& expression, const std::string& device_code,
             nb::object gated, const nb::kwargs& values) {
            new (self)
                BoundEpilogue(bind_epilogue(expression, values.ptr(), device_code, gated.ptr()));
          },
          "expression"_a, nb::kw_only(), "device_code"_a = "", "gated"_a = nb::none(), "values"_a,
          nb::sig("def __init__(self, expression: str, *, device_code: str = '', "
                  "gated: str | None = None, **values)"))
      .def_prop_ro("expression", [](const BoundEpilogue& b) { return b.epilogue->expression; })
      .def("__repr__", [](const BoundEpilogue& b) {
        return "<fastgemm.Epilogue " + b.epilogue->expression + ">";
      });
}

}  // namespace fastgemm::python
