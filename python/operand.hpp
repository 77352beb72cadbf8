// A Python array as the library sees it: pointer, dtype, shape, strides, device; never a copy.
#pragma once

#include <Python.h>

#include <cstdint>
#include <optional>
#include <string>

#include "fastgemm/problem.hpp"
#include "py_ref.hpp"
#include "type_info.hpp"

namespace fastgemm::python {

constexpr int max_dims = 64;
constexpr int host_device = -1;

// The one list of what is computed, for every message about dtypes.
extern const char* const dtype_table;

// The dtypes that are read or written. Nothing for any other.
std::optional<DType> known_dtype(dlpack::DataType dtype);

// What of a call torch's autograd would record. Asks at most once a call, and only when there is a
// torch tensor.
class GradMode {
 public:
  bool records(PyObject* tensor);

 private:
  enum class Mode { unknown, off, backward, forward };  // forward: dual numbers are in use
  Mode mode_ = Mode::unknown;
};

// One argument of a call. Reading it has two steps, because `__dlpack__` wants the stream of the
// call, and the stream depends on where all the operands are: locate(), then read().
class Operand {
 public:
  Operand() = default;
  Operand(const Operand&) = delete;
  ~Operand();

  // Finds the device; reads the rest too where that needs no stream. `object` must outlive the
  // operand. Stops where the operand is deferred(), which is not asked without `grad_mode`. Throws
  // InvalidType, InvalidValue or PythonError.
  void locate(const char* role, PyObject* object, GradMode* grad_mode = nullptr);

  // Whether its framework has to compute the product through an operator of its own: autograd must
  // record it, or the operand is a traced value, which has no memory.
  bool deferred() const { return recorded || type.traced; }
  [[noreturn]] void refuse_deferred(const char* function) const;

  // Reads what is left, and makes `stream` (as DLPack counts: 1 is the legacy default stream) wait
  // for the producer's own work. 0 asks for no order.
  void read(std::uintptr_t stream);

  bool on_host() const { return device == host_device; }
  std::string device_name() const;  // "host", "cuda:0"
  std::string shape_text() const;   // "(2, 3)"
  std::string text() const;         // "a (numpy.ndarray float16 of shape (2, 3) on host)"

  const char* role = "";
  PyObject* object = nullptr;  // null: not given
  TypeInfo type;
  bool takes_narrow = false;  // whether 8 bits an element are fine: of a result
  bool recorded = false;      // grad mode is on and this tensor requires grad
  int device = host_device;
  bool managed = false;  // CUDA managed memory: on whichever GPU the other operands are
  bool complete = false;
  bool read_only = false;
  DType dtype = DType::f16;
  int ndim = 0;
  void* data = nullptr;
  std::int64_t shape[max_dims];
  std::int64_t strides[max_dims];  // in elements

 private:
  void read_exchange_api();
  void read_numpy();
  void read_cupy();
  void read_numpy_dtype();
  void read_numpy_dtype(const std::string& typestr);
  void read_byte_strides(PyObject* extents, PyObject* byte_strides);
  void read_address(PyObject* address);
  void order_cupy(std::uintptr_t stream);
  void read_capsule(PyObject* capsule);
  void release();
  void read_tensor(const dlpack::Tensor& tensor);
  void set_device(dlpack::Device where);
  void set_rank(long long rank);
  bool empty() const;
  void check_address() const;
  [[noreturn]] void refuse_dtype(const std::string& found) const;

  dlpack::ManagedTensor* managed_ = nullptr;
  dlpack::ManagedTensorVersioned* versioned_ = nullptr;
  Ref detached_;
};

}  // namespace fastgemm::python
