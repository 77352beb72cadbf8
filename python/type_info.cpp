// What is known of a Python type that may be an array: looked up once, then found by its address.
#include "type_info.hpp"

#include <array>
#include <string_view>

#include "py_ref.hpp"

namespace fastgemm::python {
namespace {

std::string text_attribute(PyObject* object, const char* name) {
  Ref value = optional_attribute(object, name);
  return value && PyUnicode_Check(value.get()) ? to_string(value.get()) : std::string();
}

bool is_class(PyObject* type, std::string_view package, std::string_view name) {
  if (text_attribute(type, "__name__") != name) return false;
  std::string module = text_attribute(type, "__module__");
  return module.substr(0, module.find('.')) == package;
}

// Our version of the functions, or null. A major version that is not ours has other fields.
const dlpack::ExchangeApi* api_in(PyObject* capsule) {
  using Header = dlpack::ExchangeApiHeader;
  if (!PyCapsule_IsValid(capsule, dlpack::ExchangeApi::name)) return nullptr;
  auto* header = static_cast<Header*>(PyCapsule_GetPointer(capsule, dlpack::ExchangeApi::name));
  while (header && header->version.major != dlpack::major_version) header = header->previous;
  auto* api = reinterpret_cast<const dlpack::ExchangeApi*>(header);
  return api && api->to_tensor && api->current_stream ? api : nullptr;
}

// A subclass inherits the attribute, but the functions only know the class that defines it.
const dlpack::ExchangeApi* own_api(PyObject* type) {
  constexpr const char* name = "__dlpack_c_exchange_api__";
  Ref members = attribute(type, "__dict__");
  Ref key = Ref::steal(PyUnicode_FromString(name));
  int defined = PySequence_Contains(members.get(), key.get());
  if (defined < 0) throw PythonError{};
  return defined ? api_in(attribute(type, name).get()) : nullptr;
}

// A torch.Tensor subclass holds plain memory unless it has its own __torch_dispatch__ (FakeTensor,
// DTensor ...).
void classify_torch(PyObject* tensor_class, TypeInfo& info) {
  auto* type = reinterpret_cast<PyObject*>(info.type);
  info.framework = Framework::torch;
  Ref own = optional_attribute(type, "__torch_dispatch__");
  Ref plain = optional_attribute(tensor_class, "__torch_dispatch__");
  if (own.get() == plain.get()) {
    info.api = own_api(tensor_class);
    info.plain = type == tensor_class || is_class(type, "torch", "Parameter");
  } else {
    info.traced = true;
    info.refusal =
        "this subclass of torch.Tensor does not hold plain memory (it has a __torch_dispatch__ of "
        "its own); pass the tensor that it wraps";
  }
}

TypeInfo classify(PyTypeObject* py_type) {
  TypeInfo info;
  info.type = py_type;
  auto* type = reinterpret_cast<PyObject*>(py_type);
  Ref bases = attribute(type, "__mro__");
  Py_ssize_t count = PyTuple_Size(bases.get());
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* base = PyTuple_GetItem(bases.get(), i);
    if (is_class(base, "torch", "Tensor")) {
      classify_torch(base, info);
      return info;
    }
    if (is_class(base, "numpy", "MaskedArray")) {
      info.framework = Framework::numpy;
      info.refusal = "its mask would be ignored; pass .filled(0) or .data";
      return info;
    }
    if (is_class(base, "jax", "Tracer")) {
      info.framework = Framework::jax;
      info.traced = true;
      info.refusal = "a traced value (inside jax.jit, grad or vmap) has no memory";
      return info;
    }
    if (is_class(base, "numpy", "ndarray")) info.framework = Framework::numpy;
    if (is_class(base, "cupy", "ndarray")) info.framework = Framework::cupy;
    if (is_class(base, "jaxlib", "ArrayImpl") || is_class(base, "jax", "ArrayImpl")) {
      info.framework = Framework::jax;
    }
  }
  if (info.framework != Framework::numpy) info.api = own_api(type);
  return info;
}

}  // namespace

TypeInfo type_info(PyObject* object) {
  // Entries hold their type, so that its address stays its own; a full table serves those it has.
  static std::array<TypeInfo, 64> table;
  PyTypeObject* type = Py_TYPE(object);
  std::size_t start = reinterpret_cast<std::uintptr_t>(type) / 16;
  for (std::size_t probe = 0; probe < 8; ++probe) {
    TypeInfo& entry = table[(start + probe) % table.size()];
    if (entry.type == type) return entry;
    if (entry.type) continue;
    TypeInfo info = classify(type);
    Py_INCREF(reinterpret_cast<PyObject*>(type));
    return entry = info;
  }
  return classify(type);
}

std::string type_name(PyObject* object) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  std::string module = text_attribute(type, "__module__");
  std::string name = text_attribute(type, "__qualname__");
  return module.empty() || module == "builtins" ? name : module + "." + name;
}

}  // namespace fastgemm::python
