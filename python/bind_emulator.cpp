// The emulator's report, and the function fastgemm.emulate.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "docstrings.hpp"
#include "emulate_call.hpp"
#include "fastgemm/error.hpp"
#include "module_parts.hpp"
#include "py_ref.hpp"
#include "repr.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace fastgemm::python {

HardwareSpec hardware_in(PyObject* object) {
  if (!object) return hardware("sm_80");
  if (PyUnicode_Check(object)) return hardware(to_string(object));
  if (nb::isinstance<HardwareSpec>(object)) return *nb::inst_ptr<HardwareSpec>(object);
  throw InvalidType("arch is neither a name such as 'sm_80' nor a fastgemm.HardwareSpec");
}

PyObject* report_object(const EmulatorReport& report) { return nb::cast(report).release().ptr(); }

void add_emulator(PyObject* module) {
  nb::module_ m = nb::borrow<nb::module_>(module);
  nb::class_<InstructionCounts> counts(m, "InstructionCounts", instruction_counts_docstring);
  counts.def_ro("name", &InstructionCounts::name)
      .def_ro("executed", &InstructionCounts::executed)
      .def_ro("shared_bytes", &InstructionCounts::shared_bytes)
      .def_ro("wavefronts", &InstructionCounts::wavefronts)
      .def_ro("bank_conflicts", &InstructionCounts::bank_conflicts)
      .def_ro("global_bytes", &InstructionCounts::global_bytes)
      .def_ro("sectors", &InstructionCounts::sectors);
  add_repr(counts, {"name", "executed", "shared_bytes", "wavefronts", "bank_conflicts",
                    "global_bytes", "sectors"});
  nb::class_<EmulatorReport>(m, "EmulatorReport", emulator_report_docstring)
      .def_ro("kernels", &EmulatorReport::kernels)
      .def_ro("config", &EmulatorReport::config)
      .def_ro("arch", &EmulatorReport::arch)
      .def_ro("ctas", &EmulatorReport::ctas)
      .def_ro("threads", &EmulatorReport::threads)
      .def_ro("seed", &EmulatorReport::seed)
      .def_ro("seconds", &EmulatorReport::seconds)
      .def_ro("instructions", &EmulatorReport::instructions)
      .def(
          "__getitem__",
          [](const EmulatorReport& report, const std::string& name) {
            for (const InstructionCounts& i : report.instructions)
              if (i.name == name) return i;
            throw nb::key_error(name.c_str());
          },
          "name"_a, "The counts of an instruction; KeyError where it was not executed.")
      .def("__str__", &EmulatorReport::str)
      .def("__repr__", [](const EmulatorReport& r) {
        return "<fastgemm.EmulatorReport " + r.arch + ": " + r.config + ">";
      });
  m.attr("emulate") = nb::steal(make_emulate_function(module));
}

}  // namespace fastgemm::python
