// What is asked of the caller's array framework: its current stream, and an array for the result.
#include "frameworks.hpp"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "fastgemm/device_memory.hpp"
#include "fastgemm/error.hpp"
#include "helpers.hpp"
#include "torch_allocation.hpp"

namespace fastgemm::python {
namespace {

Stream to_stream(unsigned long long handle) {
  return reinterpret_cast<Stream>(static_cast<std::uintptr_t>(handle));
}

Stream handle_from(PyObject* integer) {
  Ref index = Ref::steal(PyNumber_Index(integer));
  const unsigned long long handle = PyLong_AsUnsignedLongLong(index.get());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    throw InvalidValue("stream is " + to_string(integer) +
                       "; a CUDA stream handle is not negative");
  }
  return to_stream(handle);
}

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

// Something of a module that was imported before; a borrowed reference that stays.
PyObject* known_function(const char* module, const char* name) {
  return attribute(Ref::steal(PyImport_ImportModule(module)).get(), name).release();
}

Stream cupy_stream(int device) {
  static PyObject* const current = known_function("cupy.cuda", "get_current_stream");
  static PyObject* const ptr = interned("ptr");
  Ref number = Ref::steal(PyLong_FromLong(device));
  Ref stream = Ref::steal(PyObject_CallFunctionObjArgs(current, number.get(), nullptr));
  return handle_from(Ref::steal(PyObject_GetAttr(stream.get(), ptr)).get());
}

// On CuPy's current stream, of the dtype of `like`; empty where another device is current.
Ref cupy_allocate(const Operand& like, PyObject* shape) {
  static PyObject* const current_device = known_function("cupy.cuda.runtime", "getDevice");
  static PyObject* const ndarray = known_function("cupy", "ndarray");
  static PyObject* const dtype_name = interned("dtype");
  Ref device = Ref::steal(PyObject_CallObject(current_device, nullptr));
  if (to_integer(device.get()) != like.device) return {};
  Ref dtype = Ref::steal(PyObject_GetAttr(like.object, dtype_name));
  return Ref::steal(PyObject_CallFunctionObjArgs(ndarray, shape, dtype.get(), nullptr));
}

Ref shape_tuple(const MatmulShape& shape) {
  std::int64_t extents[max_dims];
  shape.result_shape(extents);
  Ref tuple = Ref::steal(PyTuple_New(shape.result_ndim()));
  for (int i = 0; i < shape.result_ndim(); ++i) {
    Ref extent = Ref::steal(PyLong_FromLongLong(extents[i]));
    PyTuple_SetItem(tuple.get(), i, extent.release());
  }
  return tuple;
}

// Device memory that goes to JAX as a DLPack tensor. JAX may drop it on any thread.
struct Exported {
  dlpack::ManagedTensor managed{};
  std::vector<std::int64_t> shape, strides;
  int device = 0;

  ~Exported() { free_on_device(managed.tensor.data, device); }
};

void delete_unused_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, dlpack::ManagedTensor::name)) return;
  void* managed = PyCapsule_GetPointer(capsule, dlpack::ManagedTensor::name);
  delete static_cast<Exported*>(static_cast<dlpack::ManagedTensor*>(managed)->manager);
}

Ref allocate_capsule(const MatmulShape& shape, DType dtype, int device, void** data) {
  auto owner = std::make_unique<Exported>();
  owner->device = device;
  owner->shape.resize(shape.result_ndim());
  owner->strides.resize(shape.result_ndim());
  shape.result_shape(owner->shape.data());
  std::int64_t elements = 1;
  for (std::size_t i = owner->shape.size(); i-- > 0;) {
    owner->strides[i] = elements;
    elements *= owner->shape[i];
  }
  static constexpr dlpack::TypeCode codes[] = {
      dlpack::TypeCode::floating, dlpack::TypeCode::bfloat,        dlpack::TypeCode::floating,
      dlpack::TypeCode::integer,  dlpack::TypeCode::float8_e4m3fn, dlpack::TypeCode::float8_e5m2};
  const dlpack::TypeCode code = codes[static_cast<int>(dtype)];
  dlpack::Tensor& tensor = owner->managed.tensor;
  tensor.data = *data = allocate_on_device((elements ? elements : 1) * size_of(dtype), device);
  tensor.device = {dlpack::DeviceType::cuda, device};
  tensor.ndim = shape.result_ndim();
  tensor.dtype = {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * size_of(dtype)),
                  1};
  tensor.shape = owner->shape.data();
  tensor.strides = owner->strides.data();
  owner->managed.manager = owner.get();
  owner->managed.deleter = [](dlpack::ManagedTensor* m) {
    delete static_cast<Exported*>(m->manager);
  };
  Ref capsule = Ref::steal(
      PyCapsule_New(&owner->managed, dlpack::ManagedTensor::name, delete_unused_capsule));
  owner.release();
  return capsule;
}

}  // namespace

const char* name(Framework framework) {
  static constexpr const char* names[] = {"numpy", "torch", "cupy", "jax", "other"};
  return names[static_cast<int>(framework)];
}

Stream current_stream(const TypeInfo& type, int device) {
  if (type.api) {
    void* stream = nullptr;
    if (type.api->current_stream(dlpack::DeviceType::cuda, device, &stream) != 0)
      throw PythonError{};
    return static_cast<Stream>(stream);
  }
  if (type.framework == Framework::cupy) return cupy_stream(device);
  if (type.framework != Framework::torch) return nullptr;
  return handle_from(Ref::steal(PyObject_CallFunction(helper("torch_stream"), "i", device)).get());
}

Stream stream_from(PyObject* object) {
  if (PyLong_Check(object) && !PyBool_Check(object)) return handle_from(object);
  for (const char* name : {"cuda_stream", "ptr"})
    if (Ref handle = optional_attribute(object, name)) return handle_from(handle.get());
  if (Ref method = optional_attribute(object, "__cuda_stream__")) {
    Ref pair = Ref::steal(PyObject_CallObject(method.get(), nullptr));
    return handle_from(Ref::steal(PySequence_GetItem(pair.get(), 1)).get());
  }
  throw InvalidType("stream is a " + type_name(object) +
                    "; expected the handle as an int, or an object with .cuda_stream, .ptr or "
                    "__cuda_stream__");
}

bool shares_stream(const Operand& x, const Operand& y) {
  if (x.type.framework != y.type.framework) return false;
  switch (x.type.framework) {
    case Framework::torch:
    case Framework::cupy:
      return true;
    case Framework::other:
      return x.type.api && x.type.api == y.type.api;
    default:
      return false;
  }
}

Result::Result(const Operand& like, const MatmulShape& shape, DType dtype, Stream stream,
               bool explicit_stream)
    : like_(like) {
  const Framework framework = like.type.framework;
  if (framework == Framework::jax && !like.on_host()) {
    object_ = allocate_capsule(shape, dtype, like.device, &data_);
    to_jax_ = true;
    return;
  }
  if (like.type.plain && !explicit_stream) {
    std::int64_t extents[max_dims];
    shape.result_shape(extents);
    object_ = torch_allocate(like, shape.result_ndim(), extents, dtype, &data_);
    if (object_) return;
  }
  Ref extents = shape_tuple(shape);
  if (framework == Framework::torch && dtype == like.dtype && !explicit_stream) {
    static PyObject* const new_empty = interned("new_empty");
    object_ =
        Ref::steal(PyObject_CallMethodObjArgs(like.object, new_empty, extents.get(), nullptr));
  } else if (framework == Framework::cupy && dtype == like.dtype && !explicit_stream) {
    object_ = cupy_allocate(like, extents.get());
  }
  if (!object_) {
    static constexpr std::array functions = {"numpy_empty", "torch_empty", "cupy_empty",
                                             "numpy_empty"};
    if (framework == Framework::other)
      throw InvalidType("cannot make a result of type " + type_name(like.object) + "; pass out=");
    Ref handle = explicit_stream ? Ref::steal(PyLong_FromVoidPtr(stream)) : Ref::borrow(Py_None);
    object_ = Ref::steal(PyObject_CallFunction(helper(functions[static_cast<int>(framework)]),
                                               "OOsO", like.object, extents.get(),
                                               fastgemm::name(dtype), handle.get()));
    to_jax_ = framework == Framework::jax;
  }
  Operand array;
  array.takes_narrow = true;
  array.locate("result", object_.get());
  if (!array.complete) array.read(dlpack_stream(stream));
  data_ = array.data;
}

PyObject* Result::finish() {
  if (!to_jax_) return object_.release();
  PyObject* function = helper(like_.on_host() ? "jax_from_host" : "jax_from_device");
  return PyObject_CallFunction(function, "OOi", object_.get(), like_.object, like_.device);
}

}  // namespace fastgemm::python
