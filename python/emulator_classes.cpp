// The classes that emulate() answers with.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "docstrings.hpp"
#include "fastgemm/emulate.hpp"
#include "module_parts.hpp"
#include "repr.hpp"

using namespace nanobind::literals;

namespace fastgemm::python {

void add_emulator_classes(PyObject* module) {
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
}

}  // namespace fastgemm::python
