// How fastgemm's errors become Python exceptions.
#include "errors.hpp"

#include <new>

#include "fastgemm/error.hpp"
#include "py_ref.hpp"

namespace fastgemm::python {
namespace {

PyObject* new_type(const char* name, const char* doc) {
  return PyErr_NewExceptionWithDoc(name, doc, PyExc_RuntimeError, nullptr);
}

Ref make_exception(PyObject* type, const std::exception& error) {
  return Ref::steal(PyObject_CallFunction(type, "s", error.what()));
}

void set_attribute(const Ref& exception, const char* name, Ref value) {
  if (PyObject_SetAttrString(exception.get(), name, value.get()) < 0) throw PythonError{};
}

void set_compile_error(const CompileError& error) {
  Ref exception = make_exception(compile_error_type(), error);
  set_attribute(exception, "log", Ref::steal(PyUnicode_FromString(error.log.c_str())));
  set_attribute(exception, "source_path",
                Ref::steal(PyUnicode_DecodeFSDefault(error.source_path.c_str())));
  PyErr_SetObject(compile_error_type(), exception.get());
}

void set_device_error(const DeviceError& error) {
  Ref exception = make_exception(device_error_type(), error);
  set_attribute(exception, "code", Ref::steal(PyLong_FromLong(error.code)));
  PyErr_SetObject(device_error_type(), exception.get());
}

void set_emulator_error(const EmulatorError& error) {
  const EmulatorError::Place& place = error.place;
  Ref exception = make_exception(emulator_error_type(), error);
  const auto set_text = [&](const char* name, const std::string& text) {
    set_attribute(exception, name, Ref::steal(PyUnicode_FromString(text.c_str())));
  };
  set_text("kind", place.kind);
  set_text("kernel", place.kernel);
  set_text("instruction", place.instruction);
  set_text("address", place.address);
  set_attribute(exception, "cta", Ref::steal(PyLong_FromLongLong(place.cta)));
  set_attribute(exception, "thread", Ref::steal(PyLong_FromLong(place.thread)));
  PyErr_SetObject(emulator_error_type(), exception.get());
}

void translate(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const PythonError&) {
  } catch (const InvalidValue& e) {
    PyErr_SetString(PyExc_ValueError, e.what());
  } catch (const InvalidType& e) {
    PyErr_SetString(PyExc_TypeError, e.what());
  } catch (const CompileError& e) {
    set_compile_error(e);
  } catch (const DeviceError& e) {
    set_device_error(e);
  } catch (const EmulatorError& e) {
    set_emulator_error(e);
  } catch (const ColdCallError& e) {
    PyErr_SetString(cold_call_error_type(), e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
}

}  // namespace

PyObject* compile_error_type() {
  static PyObject* const type =
      new_type("fastgemm.CompileError",
               "NVRTC is missing or refused a source. `log`: its own log; `source_path`: where the "
               "refused source was kept; both may be empty.");
  return type;
}

PyObject* device_error_type() {
  static PyObject* const type = new_type(
      "fastgemm.DeviceError",
      "There is no usable driver or GPU, or a driver call failed. `code`: the CUresult, 0 where "
      "there is none.");
  return type;
}

PyObject* emulator_error_type() {
  static PyObject* const type = new_type(
      "fastgemm.EmulatorError",
      "The emulator caught a kernel at something that a GPU would hide. `kind`: \"race\", \"out of "
      "bounds\", \"deadlock\" ...; `kernel`, `cta`, `thread`, `instruction` and `address` say "
      "where, "
      "-1 or empty where that does not apply.");
  return type;
}

PyObject* cold_call_error_type() {
  static PyObject* const type = new_type(
      "fastgemm.ColdCallError",
      "A kernel that is not there yet was needed while a stream is captured into a CUDA graph, or "
      "in strict mode. Make the call, or prepare() it, once before.");
  return type;
}

void set_python_error(std::exception_ptr error) noexcept {
  try {
    translate(error);
  } catch (const PythonError&) {
  }
}

}  // namespace fastgemm::python
