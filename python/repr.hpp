// repr() of classes: "Name(field=value, ...)".
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

namespace fastgemm::python {

namespace nb = nanobind;

using Names = std::vector<const char*>;

// "Type(field=value, ...)" of the named attributes, without those that are None.
inline std::string repr_of(nb::handle self, const Names& names) {
  std::string text;
  for (const char* name : names) {
    nb::object value = self.attr(name);
    if (!value.is_none())
      text += (text.empty() ? "" : ", ") + std::string(name) + "=" + nb::repr(value).c_str();
  }
  return nb::cast<std::string>(self.type().attr("__name__")) + "(" + text + ")";
}

template <class T>
void add_repr(nb::class_<T>& type, Names names) {
  type.def("__repr__", [names](nb::handle self) { return repr_of(self, names); });
}

}  // namespace fastgemm::python
