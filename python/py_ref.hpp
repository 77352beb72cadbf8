// An owned reference to a Python object, and the C++ exception that stands for a Python one.
#pragma once

#include <Python.h>

#include <string>
#include <utility>

namespace fastgemm::python {

// Thrown when a Python exception is set: whoever returns to Python returns it.
struct PythonError {};

class Ref {
 public:
  Ref() = default;
  Ref(const Ref&) = delete;
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  // Takes over a new reference; null means that a Python exception is set.
  static Ref steal(PyObject* object) {
    if (!object) throw PythonError{};
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  static Ref borrow(PyObject* object) {
    Py_XINCREF(object);
    return steal(object);
  }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// An attribute, or an empty Ref where there is none; other errors are thrown.
inline Ref optional_attribute(PyObject* object, const char* name) {
  PyObject* value = PyObject_GetAttrString(object, name);
  if (value) return Ref::steal(value);
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw PythonError{};
  PyErr_Clear();
  return {};
}

inline Ref attribute(PyObject* object, const char* name) {
  return Ref::steal(PyObject_GetAttrString(object, name));
}

inline std::string to_string(PyObject* object) {
  Ref text = Ref::steal(PyObject_Str(object));
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(text.get(), &size);
  if (!utf8) throw PythonError{};
  return {utf8, static_cast<std::size_t>(size)};
}

inline long long to_integer(PyObject* object) {
  Ref index = Ref::steal(PyNumber_Index(object));
  long long value = PyLong_AsLongLong(index.get());
  if (value == -1 && PyErr_Occurred()) throw PythonError{};
  return value;
}

}  // namespace fastgemm::python
