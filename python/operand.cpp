// A Python array as the library sees it: pointer, dtype, shape, strides, device; never a copy.
#include "operand.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "fastgemm/error.hpp"
#include "helpers.hpp"

namespace fastgemm::python {
namespace {

std::string dtype_text(dlpack::DataType dtype) {
  static constexpr const char* kinds[] = {"int",    "uint",    "float", "opaque",
                                          "bfloat", "complex", "bool"};
  if (dtype.code == std::uint8_t(dlpack::TypeCode::float8_e4m3fn)) return "float8_e4m3fn";
  if (dtype.code == std::uint8_t(dlpack::TypeCode::float8_e5m2)) return "float8_e5m2";
  std::string text = dtype.code < std::size(kinds)
                         ? kinds[dtype.code] + std::to_string(dtype.bits)
                         : "DLPack type code " + std::to_string(dtype.code) + " of " +
                               std::to_string(dtype.bits) + " bits";
  return dtype.lanes == 1 ? text : text + " x " + std::to_string(dtype.lanes) + " lanes";
}

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

bool is_true(Ref value) {
  int truth = PyObject_IsTrue(value.get());
  if (truth < 0) throw PythonError{};
  return truth != 0;
}

// Whether a TypeError says that __dlpack__ does not know max_version, as opposed to one about the
// array.
bool is_about_arguments(const std::string& message) {
  for (const char* part : {"max_version", "keyword", "function arguments"})
    if (message.find(part) != std::string::npos) return true;
  return false;
}

Ref call_dlpack(PyObject* object, std::uintptr_t stream, bool versioned) {
  Ref method = attribute(object, "__dlpack__");
  Ref none = Ref::steal(PyTuple_New(0));
  Ref keywords = Ref::steal(PyDict_New());
  if (stream) {
    Ref handle = Ref::steal(PyLong_FromUnsignedLongLong(stream));
    if (PyDict_SetItemString(keywords.get(), "stream", handle.get()) < 0) throw PythonError{};
  }
  if (versioned) {
    Ref version = Ref::steal(Py_BuildValue("(ii)", dlpack::major_version, dlpack::minor_version));
    if (PyDict_SetItemString(keywords.get(), "max_version", version.get()) < 0) throw PythonError{};
  }
  return Ref::steal(PyObject_Call(method.get(), none.get(), keywords.get()));
}

Ref export_capsule(PyObject* object, std::uintptr_t stream) {
  try {
    return call_dlpack(object, stream, true);
  } catch (const PythonError&) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (!value || !is_about_arguments(to_string(value))) {
      PyErr_Restore(type, value, traceback);
      throw;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
  }
  return call_dlpack(object, stream, false);
}

template <class Managed>
Managed* take(PyObject* capsule) {
  auto* tensor = static_cast<Managed*>(PyCapsule_GetPointer(capsule, Managed::name));
  if (!tensor || PyCapsule_SetName(capsule, Managed::used_name) < 0) throw PythonError{};
  return tensor;
}

// Replaces the exporter's exception by a TypeError that names the operand, with the first as its
// cause.
[[noreturn]] void refuse_export(const char* role, PyObject* object) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) throw PythonError{};
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  Ref cause = Ref::steal(value);
  const std::string reason = to_string(cause.get());
  const std::string message = std::string(role) + " (" + type_name(object) +
                              ") cannot be read: " + reason.substr(0, reason.find('\n')) + "; " +
                              dtype_table + ", in plain strided memory";
  Ref error = Ref::steal(PyObject_CallFunction(PyExc_TypeError, "s", message.c_str()));
  PyException_SetCause(error.get(), cause.release());
  PyErr_SetObject(PyExc_TypeError, error.get());
  throw PythonError{};
}

// Whether a tensor without memory is one of torch.func's (vmap, grad ...). If so, the exporter's
// exception is dropped.
bool is_wrapped_by_torch_func(PyObject* object) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (is_true(Ref::steal(PyObject_CallFunction(helper("torch_wrapped"), "O", object)))) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return true;
  }
  PyErr_Restore(type, value, traceback);
  return false;
}

// The negative bit of torch: memory holds the values with the other sign. It comes with the
// imaginary part of a conjugated complex tensor, whose elements never lie side by side; asking
// costs 0.1 us.
bool may_be_negated(const Operand& operand) {
  if (operand.dtype == DType::bf16) return false;
  for (int i = 0; i < operand.ndim; ++i)
    if (operand.shape[i] > 1 && operand.strides[i] == 1) return false;
  return true;
}

}  // namespace

const char* const dtype_table =
    "supported are a and b of float16 or bfloat16, both the same, with c and out of that dtype or "
    "float32, out also of int8, float8_e4m3fn or float8_e5m2, and what is fused of float16, "
    "bfloat16 "
    "or float32";

std::optional<DType> known_dtype(dlpack::DataType dtype) {
  if (dtype.lanes != 1) return {};
  if (dtype.code == std::uint8_t(dlpack::TypeCode::floating) && dtype.bits == 16) return DType::f16;
  if (dtype.code == std::uint8_t(dlpack::TypeCode::floating) && dtype.bits == 32) return DType::f32;
  if (dtype.code == std::uint8_t(dlpack::TypeCode::bfloat) && dtype.bits == 16) return DType::bf16;
  if (dtype.bits != 8) return {};
  if (dtype.code == std::uint8_t(dlpack::TypeCode::integer)) return DType::i8;
  if (dtype.code == std::uint8_t(dlpack::TypeCode::float8_e4m3fn)) return DType::e4m3;
  if (dtype.code == std::uint8_t(dlpack::TypeCode::float8_e5m2)) return DType::e5m2;
  return {};
}

Operand::~Operand() { release(); }

void Operand::release() {
  auto* managed = std::exchange(managed_, nullptr);
  auto* versioned = std::exchange(versioned_, nullptr);
  if (managed && managed->deleter) managed->deleter(managed);
  if (versioned && versioned->deleter) versioned->deleter(versioned);
}

std::string Operand::device_name() const {
  return on_host() ? "host" : (managed ? "cuda managed:" : "cuda:") + std::to_string(device);
}

std::string Operand::shape_text() const {
  std::string text = "(";
  for (int i = 0; i < ndim; ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + (ndim == 1 ? ",)" : ")");
}

std::string Operand::text() const {
  return std::string(role) + " (" + type_name(object) + " " + name(dtype) + " of shape " +
         shape_text() + " on " + device_name() + ")";
}

void Operand::locate(const char* role_, PyObject* object_, GradMode* grad_mode) {
  role = role_;
  object = object_;
  type = type_info(object);
  if (type.traced) return;
  if (type.refusal)
    throw InvalidType(std::string(role) + " (" + type_name(object) + "): " + type.refusal);
  recorded = type.framework == Framework::torch && grad_mode && grad_mode->records(object);
  if (recorded) return;
  if (type.api) return read_exchange_api();
  if (type.framework == Framework::numpy) return read_numpy();
  if (type.framework == Framework::cupy) return read_cupy();
  if (type.framework == Framework::jax) {
    Ref capsule = Ref::steal(PyObject_CallFunction(helper("jax_capsule"), "O", object));
    if (capsule.get() != Py_None) return read_capsule(capsule.get());
  }

  Ref device_method = optional_attribute(object, "__dlpack_device__");
  if (!device_method)
    throw InvalidType(std::string(role) + " is a " + type_name(object) +
                      ", not an array: expected one of NumPy, CuPy, JAX, PyTorch, or anything with "
                      "__dlpack__ and __dlpack_device__");
  Ref pair = Ref::steal(PyObject_CallObject(device_method.get(), nullptr));
  if (!PyTuple_Check(pair.get()) || PyTuple_Size(pair.get()) != 2)
    throw InvalidType(std::string(role) + ".__dlpack_device__() must return (type, id)");
  auto device_type = static_cast<dlpack::DeviceType>(to_integer(PyTuple_GetItem(pair.get(), 0)));
  set_device({device_type, static_cast<std::int32_t>(to_integer(PyTuple_GetItem(pair.get(), 1)))});
}

void Operand::refuse_deferred(const char* function) const {
  if (type.traced)
    throw InvalidType(
        std::string(role) + " (" + type_name(object) +
        "): " + (type.refusal ? type.refusal : "a tensor inside of torch.func has no memory"));
  throw InvalidValue(std::string(role) + " requires grad and grad mode is on, but autograd does " +
                     "not record " + function + "; call it under torch.no_grad() or pass " + role +
                     ".detach()");
}

// Modes are of the call, but whether grad mode is on matters only to a tensor that requires grad.
bool GradMode::records(PyObject* tensor) {
  static PyObject* const requires_grad = interned("requires_grad");
  static PyObject* const current_level = interned("_current_level");
  static PyObject* const is_grad_enabled =
      attribute(Ref::steal(PyImport_ImportModule("torch")).get(), "is_grad_enabled").release();
  static PyObject* const forward_ad =
      PyModule_GetDict(PyImport_ImportModule("torch.autograd.forward_ad"));
  if (mode_ == Mode::unknown) {
    PyObject* level = PyDict_GetItem(forward_ad, current_level);
    mode_ = level && PyLong_AsLong(level) >= 0 ? Mode::forward : Mode::backward;
  }
  if (mode_ == Mode::forward) return true;
  if (mode_ == Mode::off || !is_true(Ref::steal(PyObject_GetAttr(tensor, requires_grad))))
    return false;
  if (!is_true(Ref::steal(PyObject_CallObject(is_grad_enabled, nullptr)))) mode_ = Mode::off;
  return mode_ == Mode::backward;
}

void Operand::read(std::uintptr_t stream) {
  const bool on_legacy_stream = type.framework == Framework::jax && stream == 1;
  if (complete && (!stream || on_legacy_stream)) return;
  if (type.framework == Framework::cupy) return order_cupy(stream);
  PyObject* source = object;
  if (type.framework == Framework::torch && is_true(attribute(object, "requires_grad"))) {
    detached_ = Ref::steal(PyObject_CallMethod(object, "detach", nullptr));
    source = detached_.get();
  }
  const std::string announced = device_name();
  Ref capsule = export_capsule(source, on_host() ? 0 : stream);
  read_capsule(capsule.get());
  if (device_name() != announced)
    throw InvalidValue(std::string(role) + " (" + type_name(object) + ") announced memory on " +
                       announced + " and exported it on " + device_name());
}

void Operand::order_cupy(std::uintptr_t stream) {
  Ref handle = Ref::steal(PyLong_FromUnsignedLongLong(stream));
  Ref::steal(PyObject_CallFunction(helper("cupy_order"), "iO", device, handle.get()));
}

void Operand::read_capsule(PyObject* capsule) {
  const std::string who = std::string(role) + " (" + type_name(object) + ")";
  release();
  if (PyCapsule_IsValid(capsule, dlpack::ManagedTensorVersioned::name)) {
    versioned_ = take<dlpack::ManagedTensorVersioned>(capsule);
    if (versioned_->version.major != dlpack::major_version)
      throw InvalidType(who + " was exported as DLPack " +
                        std::to_string(versioned_->version.major) + "." +
                        std::to_string(versioned_->version.minor) + "; at most " +
                        std::to_string(dlpack::major_version) + ".x is understood");
    read_only = versioned_->flags & dlpack::flag_read_only;
    read_tensor(versioned_->tensor);
  } else if (PyCapsule_IsValid(capsule, dlpack::ManagedTensor::name)) {
    managed_ = take<dlpack::ManagedTensor>(capsule);
    read_tensor(managed_->tensor);
  } else {
    throw InvalidType(who + ": __dlpack__ returned a " + type_name(capsule) +
                      ", not an unused DLPack capsule");
  }
}

void Operand::read_exchange_api() {
  dlpack::Tensor tensor;
  if (type.api->to_tensor(object, &tensor) != 0) {
    if (type.framework == Framework::torch && is_wrapped_by_torch_func(object)) {
      type.traced = true;
      return;
    }
    refuse_export(role, object);
  }
  read_tensor(tensor);
  static PyObject* const is_neg = interned("is_neg");
  if (type.framework == Framework::torch && may_be_negated(*this) &&
      is_true(Ref::steal(PyObject_CallMethodObjArgs(object, is_neg, nullptr))))
    throw InvalidType(std::string(role) + " has torch's negative bit set; pass " + role +
                      ".resolve_neg()");
}

// CPU and pinned memory are host memory. Managed memory is GPU memory: DLPack says it is on device
// 0, which stands for any.
void Operand::set_device(dlpack::Device where) {
  managed = where.type == dlpack::DeviceType::cuda_managed;
  switch (where.type) {
    case dlpack::DeviceType::cpu:
    case dlpack::DeviceType::cuda_host:
      device = host_device;
      return;
    case dlpack::DeviceType::cuda:
    case dlpack::DeviceType::cuda_managed:
      device = where.id;
      return;
  }
  throw InvalidType(std::string(role) + " (" + type_name(object) + ") is on DLPack device type " +
                    std::to_string(static_cast<int>(where.type)) +
                    "; supported are the host (1, 3), CUDA (2) and CUDA managed memory (13)");
}

void Operand::refuse_dtype(const std::string& found) const {
  throw InvalidType(std::string(role) + " (" + type_name(object) + ") has dtype " + found + "; " +
                    dtype_table);
}

void Operand::set_rank(long long rank) {
  if (rank < 0 || rank > max_dims)
    throw InvalidValue(std::string(role) + " has " + std::to_string(rank) +
                       " dimensions; at most " + std::to_string(max_dims) + " are supported");
  ndim = static_cast<int>(rank);
}

bool Operand::empty() const { return std::find(shape, shape + ndim, 0) != shape + ndim; }

void Operand::check_address() const {
  if (!empty() && reinterpret_cast<std::uintptr_t>(data) % size_of(dtype))
    throw InvalidValue(std::string(role) + " (" + type_name(object) +
                       ") starts at an address that is not a multiple of its item size of " +
                       std::to_string(size_of(dtype)) + " bytes; pass a copy");
}

void Operand::read_tensor(const dlpack::Tensor& tensor) {
  set_device(tensor.device);
  std::optional<DType> known = known_dtype(tensor.dtype);
  if (!known || (size_of(*known) == 1 && !takes_narrow)) refuse_dtype(dtype_text(tensor.dtype));
  dtype = *known;
  set_rank(tensor.ndim);
  data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  std::int64_t packed = 1;
  for (int i = ndim - 1; i >= 0; --i) {
    shape[i] = tensor.shape[i];
    strides[i] = tensor.strides ? tensor.strides[i] : packed;
    packed *= shape[i];
  }
  check_address();
  complete = true;
}

}  // namespace fastgemm::python
