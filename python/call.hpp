// A call of gemm() and its like: the arguments by name, then read, checked and placed.
#pragma once

#include <Python.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "fastgemm/gemm.hpp"
#include "matmul.hpp"
#include "operand.hpp"

namespace fastgemm::python {

enum Argument {
  arg_a,
  arg_b,
  arg_bias,
  arg_c,
  arg_alpha,
  arg_beta,
  arg_activation,
  arg_scale_a,
  arg_scale_b,
  arg_residual,
  arg_keep,
  arg_amax,
  arg_out_scale,
  arg_gated,
  arg_epilogue,
  arg_out,
  arg_out_dtype,
  arg_config,
  arg_stream,
  arg_arch,
  arg_seed,
  arg_workers,
  argument_count
};

// Null where not given or None.
using Arguments = std::array<PyObject*, argument_count>;

// A Python function with these arguments: the first `positional` go by position too, and those
// without a name are not taken.
struct Signature {
  const char* function;
  std::size_t positional;
  std::array<const char*, argument_count> names;
  bool transposed_b = false;  // b is given as (n, k)
  bool recorded = true;       // whether autograd is asked
  Arguments interned{};       // the names as Python has them
};

// The arguments of a vectorcall. Throws InvalidType.
Arguments parse(Signature& signature, PyObject* const* args, Py_ssize_t count, PyObject* keywords,
                bool all_optional = false);

// What the call fuses with its product.
struct FusedCall {
  NamedParts parts;
  std::shared_ptr<const Epilogue> epilogue;  // of an Epilogue object, or once arrays were read
  std::vector<Argument> arguments;           // of `arrays`, where they are named parts
  std::vector<std::unique_ptr<Operand>> arrays;
  std::vector<float> numbers;
  GateOrder gate_order = GateOrder::interleaved;

  bool gated() const { return parts.gated || (epilogue && epilogue->gated); }
  bool given() const {
    return parts.gated || epilogue || !arrays.empty() || !numbers.empty() ||
           !parts.activation.empty();
  }
};

// A call whose arguments have all been read and checked: nothing has been allocated or enqueued
// yet.
struct Call {
  Operand a, b, c, out;  // c: unless it is fused
  FusedCall fused;
  Matmul matmul;
  DType out_dtype = DType::f16;
  GemmConfig config;
  Stream stream = nullptr;
  bool explicit_stream = false;
  bool waits = false;  // the product must be there when the call returns
  int device = host_device;

  // Whether an operand is.
  bool deferred() const {
    bool any = false;
    for_each_operand([&](const Operand& x) { any = any || x.deferred(); });
    return any;
  }

  // Calls body() with each operand that is given.
  template <class Body>
  void for_each_operand(Body body) const {
    for (const Operand* x : {&a, &b, &c, &out})
      if (x->object) body(const_cast<Operand&>(*x));
    for (const auto& x : fused.arrays) body(*x);
  }
};

// Throws InvalidType, InvalidValue or PythonError. False, with nothing but a and b located, where
// an operand is deferred(): the call is then for its framework.
bool read_call(const Signature& signature, const Arguments& given, Call& call);

// The real number in an argument. Throws InvalidType.
float to_float(PyObject* number, const char* name);

// Finds the operands of what is fused; after they were read, their places along the result.
void locate_fused(const Arguments& given, Call& call, GradMode* grad_mode);
void place_fused(Call& call);

// The same for functions that no framework records or traces: they refuse such operands.
void read_own_call(const Signature& signature, const Arguments& given, Call& call);

class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ReleasedGil(const ReleasedGil&) = delete;
  ~ReleasedGil() { PyEval_RestoreThread(state_); }

 private:
  PyThreadState* state_;
};

}  // namespace fastgemm::python
