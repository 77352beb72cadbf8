// A call of gemm() and its like: the arguments by name, then read, checked and placed.
#include "call.hpp"

#include <string>
#include <utility>

#include "fastgemm/error.hpp"
#include "frameworks.hpp"
#include "gemm_call.hpp"

namespace fastgemm::python {
namespace {

[[noreturn]] void refuse(const Signature& signature, const std::string& message) {
  throw InvalidType(std::string(signature.function) + "() " + message);
}

std::size_t find_argument(Signature& signature, PyObject* name) {
  Arguments& interned = signature.interned;
  for (std::size_t i = 0; i < interned.size(); ++i)
    if (name == interned[i]) return i;
  for (std::size_t i = 0; i < interned.size(); ++i)
    if (signature.names[i] && !interned[i])
      interned[i] = PyUnicode_InternFromString(signature.names[i]);
  for (std::size_t i = 0; i < interned.size(); ++i)
    if (interned[i] && PyUnicode_Compare(name, interned[i]) == 0) return i;
  refuse(signature, "got an unexpected keyword argument '" + to_string(name) + "'");
}

void read_numbers(const Arguments& given, Call& call) {
  if (given[arg_alpha]) call.matmul.alpha = to_float(given[arg_alpha], "alpha");
  if (given[arg_beta] && !given[arg_c])
    throw InvalidValue("beta is given without c; pass the array that it multiplies as c=");
  call.matmul.beta = given[arg_beta] ? to_float(given[arg_beta], "beta")
                     : given[arg_c]  ? 1.0f
                                     : 0.0f;
  if (!given[arg_config]) return;
  const GemmConfig* config = config_in(given[arg_config]);
  if (!config)
    throw InvalidType("config is a " + type_name(given[arg_config]) +
                      ", not a fastgemm.GemmConfig");
  call.config = *config;
}

// All operands on the host, or all on one GPU. Managed memory is on any GPU.
void check_devices(Call& call) {
  const Operand* first = &call.a;
  call.for_each_operand([&](const Operand& x) {
    if (first->managed && !x.managed) first = &x;
  });
  call.device = first->device;
  call.for_each_operand([&](const Operand& x) {
    if (x.device == call.device || (x.managed && call.device != host_device)) return;
    std::string where;
    call.for_each_operand([&](const Operand& y) {
      where += std::string(where.empty() ? "" : ", ") + y.role + " (" + type_name(y.object) +
               ") on " + y.device_name();
    });
    throw InvalidValue("operands in different places: " + where +
                       "; move them to one device, or all to the host");
  });
}

void choose_stream(const Arguments& given, Call& call) {
  if (call.device == host_device) {
    if (given[arg_stream])
      throw InvalidValue("stream is given, but the operands are in host memory");
    return;
  }
  call.explicit_stream = given[arg_stream] != nullptr;
  call.stream = given[arg_stream] ? stream_from(given[arg_stream]) : current_stream(call.a);
  call.for_each_operand([&](const Operand& x) {
    const bool stays =
        call.explicit_stream ? x.type.framework != Framework::jax : shares_stream(call.a, x);
    if (!stays) call.waits = true;
  });
}

void read_operands(Call& call) {
  call.for_each_operand([&](Operand& x) {
    const bool ordered =
        call.explicit_stream || call.device == host_device || shares_stream(call.a, x);
    const bool of_jax = x.type.framework == Framework::jax;  // located for the legacy stream
    if (!x.complete || !ordered || of_jax) x.read(dlpack_stream(call.stream));
  });
}

void check_dtypes(const Arguments& given, Call& call) {
  std::optional<DType> wanted;
  if (given[arg_out_dtype]) wanted = dtype_from(given[arg_out_dtype]);
  call.out_dtype = call.out.object ? call.out.dtype : wanted.value_or(call.a.dtype);
  const bool in = call.a.dtype == call.b.dtype && size_of(call.a.dtype) == 2;
  const bool narrow = size_of(call.out_dtype) == 1 && !call.c.object;
  const bool out = call.out_dtype == call.a.dtype || call.out_dtype == DType::f32 || narrow;
  const bool c = !call.c.object || call.c.dtype == call.out_dtype;
  if (in && out && c && wanted.value_or(call.out_dtype) == call.out_dtype) return;
  std::string got;
  for (const Operand* x : {&call.a, &call.b, &call.c, &call.out})
    if (x->object) got += std::string(x->role) + " " + fastgemm::name(x->dtype) + ", ";
  if (wanted) got += std::string("out_dtype ") + fastgemm::name(*wanted) + ", ";
  throw InvalidType("unsupported dtypes: " + got + "result " + fastgemm::name(call.out_dtype) +
                    "; " + dtype_table);
}

void check_writable(const Operand& x) {
  if (x.type.framework == Framework::jax)
    throw InvalidType(std::string(x.role) + " is a JAX array, which is immutable" +
                      (x.role == std::string("out") ? "; use the returned array" : ""));
  if (x.read_only) throw InvalidValue(std::string(x.role) + " is read-only");
}

void refuse_deferred(const Signature& signature, const Call& call) {
  call.for_each_operand([&](const Operand& x) {
    if (x.deferred()) x.refuse_deferred(signature.function);
  });
}

// (k, n) as a view of (n, k).
void transpose(Operand& b) {
  if (b.ndim != 2)
    throw InvalidValue(std::string(b.role) + " has shape " + b.shape_text() +
                       "; expected a matrix (out_features, in_features)");
  std::swap(b.shape[0], b.shape[1]);
  std::swap(b.strides[0], b.strides[1]);
  b.role = "weight.T";
}

}  // namespace

float to_float(PyObject* number, const char* name) {
  const double value = PyFloat_AsDouble(number);
  if (value == -1.0 && PyErr_Occurred()) {
    PyErr_Clear();
    throw InvalidType(std::string(name) + " is a " + type_name(number) + ", not a real number");
  }
  return static_cast<float>(value);
}

Arguments parse(Signature& signature, PyObject* const* args, Py_ssize_t count, PyObject* keywords,
                bool all_optional) {
  Arguments given{};
  if (count > static_cast<Py_ssize_t>(signature.positional))
    refuse(signature, "takes " + std::to_string(signature.positional) +
                          " positional arguments, but " + std::to_string(count) +
                          " were given; the others go by keyword");
  for (Py_ssize_t i = 0; i < count; ++i) given[i] = args[i];
  const Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    const std::size_t argument = find_argument(signature, PyTuple_GetItem(keywords, i));
    if (given[argument])
      refuse(signature,
             std::string("got multiple values for argument '") + signature.names[argument] + "'");
    given[argument] = args[count + i];
  }
  for (std::size_t i = all_optional ? 0 : arg_bias; i < given.size(); ++i)
    if (given[i] == Py_None) given[i] = nullptr;
  if (!all_optional && (!given[arg_a] || !given[arg_b]))
    refuse(signature,
           std::string("needs ") + signature.names[arg_a] + " and " + signature.names[arg_b]);
  return given;
}

bool read_call(const Signature& signature, const Arguments& given, Call& call) {
  read_numbers(given, call);
  GradMode asked;
  GradMode* grad_mode = signature.recorded ? &asked : nullptr;
  call.a.locate(signature.names[arg_a], given[arg_a], grad_mode);
  call.b.locate(signature.names[arg_b], given[arg_b], grad_mode);
  locate_fused(given, call, grad_mode);
  if (given[arg_c] && !call.fused.given()) call.c.locate("c", given[arg_c], grad_mode);
  if (call.deferred()) {
    for (std::size_t part = arg_scale_a; part <= arg_epilogue; ++part)
      if (given[part]) refuse_deferred(signature, call);
    return false;
  }
  call.out.takes_narrow = true;
  if (given[arg_out]) call.out.locate("out", given[arg_out], grad_mode);
  if (call.out.object && call.out.deferred()) call.out.refuse_deferred(signature.function);
  check_devices(call);
  choose_stream(given, call);
  read_operands(call);
  if (given[arg_out]) check_writable(call.out);
  for (const auto& x : call.fused.arrays)
    if (x->role == std::string("keep") || x->role == std::string("amax")) check_writable(*x);
  check_dtypes(given, call);

  Matmul& matmul = call.matmul;
  if (signature.transposed_b) transpose(call.b);
  matmul.shape = matmul_shape(call.a, call.b);
  matmul.shape.gated = call.fused.gated();
  matmul.a = place_a(matmul.shape, call.a);
  matmul.b = place_b(matmul.shape, call.b);
  if (call.c.object) matmul.c = place_c(matmul.shape, call.c);
  place_fused(call);
  if (!call.c.object) matmul.beta = 0.0f;
  matmul.d = given[arg_out] ? place_out(matmul.shape, call.out)
                            : place_new(matmul.shape, nullptr, call.out_dtype);
  return true;
}

void read_own_call(const Signature& signature, const Arguments& given, Call& call) {
  if (!read_call(signature, given, call)) refuse_deferred(signature, call);
}

}  // namespace fastgemm::python
