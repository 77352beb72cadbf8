// Arrays that are read by their attributes and not by DLPack: NumPy's and CuPy's.
#include <optional>
#include <utility>

#include "fastgemm/error.hpp"
#include "helpers.hpp"
#include "operand.hpp"

namespace fastgemm::python {

void Operand::read_numpy() {
  Ref interface = attribute(object, "__array_interface__");
  auto field = [&](const char* key) { return PyDict_GetItemString(interface.get(), key); };
  read_numpy_dtype(to_string(field("typestr")));
  read_byte_strides(field("shape"), field("strides"));
  PyObject* address = field("data");
  read_address(PyTuple_GetItem(address, 0));
  const int locked = PyObject_IsTrue(PyTuple_GetItem(address, 1));
  if (locked < 0) throw PythonError{};
  read_only = locked != 0;
}

// By attributes: CuPy's DLPack exports have no bfloat16 and ask the driver about every pointer.
void Operand::read_cupy() {
  static PyObject* const data_name = PyUnicode_InternFromString("data");
  static PyObject* const device_id = PyUnicode_InternFromString("device_id");
  static PyObject* const shape_name = PyUnicode_InternFromString("shape");
  static PyObject* const strides_name = PyUnicode_InternFromString("strides");
  static PyObject* const ptr = PyUnicode_InternFromString("ptr");
  const auto get = [](PyObject* from, PyObject* name) {
    return Ref::steal(PyObject_GetAttr(from, name));
  };
  Ref memory = get(object, data_name);
  device = static_cast<int>(to_integer(get(memory.get(), device_id).get()));
  read_numpy_dtype();
  read_byte_strides(get(object, shape_name).get(), get(object, strides_name).get());
  read_address(get(memory.get(), ptr).get());
}

// NumPy has one object for each of its own dtypes in native byte order: those that were read before
// are known by their address.
void Operand::read_numpy_dtype() {
  struct Known {
    PyObject* object = nullptr;  // owned
    DType dtype = DType::f16;
  };
  static Known known[8];
  static std::size_t next = 0;
  static PyObject* const dtype_name = PyUnicode_InternFromString("dtype");
  Ref of_object = Ref::steal(PyObject_GetAttr(object, dtype_name));
  for (const Known& one : known) {
    if (one.object != of_object.get() || (size_of(one.dtype) == 1 && !takes_narrow)) continue;
    dtype = one.dtype;
    return;
  }
  read_numpy_dtype(to_string(attribute(of_object.get(), "str").get()));
  Known& slot = known[next++ % 8];
  Py_XDECREF(std::exchange(slot.object, of_object.release()));
  slot.dtype = dtype;
}

// "<f2" and so on. The types of ml_dtypes are opaque bytes to NumPy, and known by their names.
void Operand::read_numpy_dtype(const std::string& typestr) {
  Ref object_dtype = attribute(object, "dtype");
  const std::string kind = typestr.substr(1);
  const auto named = [&](const char* name) {
    return to_string(attribute(attribute(object_dtype.get(), "type").get(), "__name__").get()) ==
           name;
  };
  const bool opaque = kind[0] == 'V' || kind == "f1";
  std::optional<DType> known;
  if (kind == "f2") known = DType::f16;
  if (kind == "f4") known = DType::f32;
  if (kind == "V2" && named("bfloat16")) known = DType::bf16;
  if (takes_narrow && kind == "i1") known = DType::i8;
  if (takes_narrow && opaque && named("float8_e4m3fn")) known = DType::e4m3;
  if (takes_narrow && opaque && named("float8_e5m2")) known = DType::e5m2;
  if (!known || typestr[0] == '>')
    refuse_dtype(to_string(object_dtype.get()) + (known ? " in big-endian byte order" : ""));
  dtype = *known;
}

// Strides that are None mean packed.
void Operand::read_byte_strides(PyObject* extents, PyObject* byte_strides) {
  set_rank(PyTuple_Size(extents));
  const auto item = static_cast<std::int64_t>(size_of(dtype));
  std::int64_t packed = 1;
  for (int i = ndim - 1; i >= 0; --i) {
    shape[i] = to_integer(PyTuple_GetItem(extents, i));
    strides[i] = packed;
    packed *= shape[i];
    if (byte_strides == Py_None || shape[i] <= 1) continue;
    const std::int64_t bytes = to_integer(PyTuple_GetItem(byte_strides, i));
    if (bytes % item)
      throw InvalidValue(std::string(role) + " has a stride of " + std::to_string(bytes) +
                         " bytes in dimension " + std::to_string(i) +
                         ", which is not a multiple of its item size of " + std::to_string(item) +
                         " bytes; pass a copy");
    strides[i] = bytes / item;
  }
}

void Operand::read_address(PyObject* address) {
  Ref index = Ref::steal(PyNumber_Index(address));
  data = reinterpret_cast<void*>(PyLong_AsUnsignedLongLong(index.get()));
  if (PyErr_Occurred()) throw PythonError{};
  check_address();
  complete = true;
}

}  // namespace fastgemm::python
