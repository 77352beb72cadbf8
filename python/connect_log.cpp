// Where the library's messages go in Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "fastgemm/log.hpp"
#include "module_parts.hpp"

namespace nb = nanobind;

namespace fastgemm::python {

// Messages go to fastgemm/_log.py, which imports logging only then. Python is gone before C++ is.
void connect_log() {
  set_log_hook([](LogLevel level, const std::string& message) {
    nb::gil_scoped_acquire acquire;
    try {
      nb::module_::import_("fastgemm._log").attr("emit")(level == LogLevel::warning, message);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("fastgemm: log message");
    }
  });
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { set_log_hook({}); }));
}

}  // namespace fastgemm::python
