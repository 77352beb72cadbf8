// fastgemm.gemm and fastgemm.linear as plain CPython functions: arrays in, problem, launch, array
// out.
#include "gemm_call.hpp"

#include <array>
#include <exception>
#include <string>

#include "call.hpp"
#include "docstrings.hpp"
#include "emulate_call.hpp"
#include "errors.hpp"
#include "fastgemm/device_memory.hpp"
#include "frameworks.hpp"
#include "helpers.hpp"

namespace fastgemm::python {
namespace {

void launch(const Call& call) {
  if (emulates_instead(call)) {
    emulate_call(call, hardware("sm_80"));
    return;
  }
  ReleasedGil released;
  for_each_problem(call.matmul, [&call](const GemmProblem& problem) {
    if (call.device == host_device)
      fastgemm::gemm_on_host_memory(problem, call.config);
    else
      fastgemm::gemm(problem, call.stream, call.config, call.device);
  });
  if (call.waits) synchronize(call.stream, call.device);
}

// Hands the call to the operator that fastgemm has for the framework: one that autograd records, or
// that stands in a traced program.
PyObject* defer(const Signature& signature, const Arguments& given, const Call& call) {
  Ref arguments = Ref::steal(PyDict_New());
  for (std::size_t i = 0; i < given.size(); ++i)
    if (given[i] && PyDict_SetItemString(arguments.get(), signature.names[i], given[i]) < 0)
      throw PythonError{};
  const bool jax = call.b.type.framework == Framework::jax && call.b.deferred();
  return PyObject_CallFunction(
      helper(jax || call.a.type.framework == Framework::jax ? "jax_call" : "torch_call"), "sO",
      signature.function, arguments.get());
}

PyObject* run(const Signature& signature, const Arguments& given) {
  Call call;
  if (!signature.recorded)
    read_own_call(signature, given, call);
  else if (!read_call(signature, given, call))
    return defer(signature, given, call);
  offer_nvrtc_folders();
  if (call.out.object) {
    launch(call);
    Py_INCREF(call.out.object);
    return call.out.object;
  }
  Result result(call.a, call.matmul.shape, call.out_dtype, call.stream, call.explicit_stream);
  call.matmul.d.data = result.data();
  launch(call);
  return result.finish();
}

Ref describe_view(const MatrixView& view) {
  return Ref::steal(Py_BuildValue(
      "{s:K,s:s,s:(LLL)}", "data",
      static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(view.data)), "dtype",
      fastgemm::name(view.dtype), "strides", static_cast<long long>(view.batch_stride),
      static_cast<long long>(view.row_stride), static_cast<long long>(view.col_stride)));
}

// The epilogue's expression, and what its names stand for.
Ref describe_fusion(const Fusion* fusion) {
  if (!fusion) return Ref::borrow(Py_None);
  Ref values = Ref::steal(PyDict_New());
  const auto set = [&values](const std::string& name, Ref value) {
    if (PyDict_SetItemString(values.get(), name.c_str(), value.get()) < 0) throw PythonError{};
  };
  for (std::size_t i = 0; i < fusion->arrays.size(); ++i)
    set(fusion->epilogue->arrays[i].name, describe_view(fusion->arrays[i]));
  for (std::size_t i = 0; i < fusion->numbers.size(); ++i)
    set(fusion->epilogue->numbers[i],
        Ref::steal(PyFloat_FromDouble(static_cast<double>(fusion->numbers[i]))));
  return Ref::steal(Py_BuildValue("(sN)", fusion->epilogue->expression.c_str(), values.release()));
}

Ref describe_problem(const GemmProblem& p) {
  return Ref::steal(Py_BuildValue(
      "{s:N,s:(LLLL),s:N,s:N,s:N,s:N,s:d,s:d}", "epilogue",
      describe_fusion(p.fusion.get()).release(), "batch_m_n_k", static_cast<long long>(p.batch),
      static_cast<long long>(p.m), static_cast<long long>(p.n), static_cast<long long>(p.k), "a",
      describe_view(p.a).release(), "b", describe_view(p.b).release(), "c",
      describe_view(p.c).release(), "d", describe_view(p.d).release(), "alpha",
      static_cast<double>(p.alpha), "beta", static_cast<double>(p.beta)));
}

PyObject* describe(const Signature& signature, const Arguments& given) {
  Call call;
  read_own_call(signature, given, call);
  Ref problems = Ref::steal(PyList_New(0));
  for_each_problem(call.matmul, [&problems](const GemmProblem& problem) {
    if (PyList_Append(problems.get(), describe_problem(problem).get()) < 0) throw PythonError{};
  });
  std::int64_t extents[max_dims];
  call.matmul.shape.result_shape(extents);
  Ref shape = Ref::steal(PyList_New(0));
  for (int i = 0; i < call.matmul.shape.result_ndim(); ++i) {
    Ref extent = Ref::steal(PyLong_FromLongLong(extents[i]));
    if (PyList_Append(shape.get(), extent.get()) < 0) throw PythonError{};
  }
  return Py_BuildValue(
      "{s:N,s:N,s:s,s:s,s:s,s:K,s:O}", "problems", problems.release(), "shape",
      PyList_AsTuple(shape.get()), "out_dtype", fastgemm::name(call.out_dtype), "framework",
      name(call.a.type.framework), "device", call.a.device_name().c_str(), "stream",
      static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(call.stream)), "waits",
      call.waits ? Py_True : Py_False);
}

constexpr decltype(Signature::names) gemm_names = {
    "a",        "b",       "bias",      "c",      "alpha", "beta",      "activation",
    "scale_a",  "scale_b", "residual",  "keep",   "amax",  "out_scale", "gated",
    "epilogue", "out",     "out_dtype", "config", "stream"};

Signature gemm_signature = {"gemm", 2, gemm_names};
Signature unrecorded_signature = {"_gemm", 2, gemm_names, false, /*recorded=*/false};
Signature describe_signature = {"_describe_call", 2, gemm_names};
constexpr decltype(Signature::names) linear_names = {
    "x",     "weight", "bias",  nullptr, nullptr, nullptr, "activation", nullptr,  nullptr, nullptr,
    nullptr, nullptr,  nullptr, nullptr, nullptr, "out",   "out_dtype",  "config", "stream"};

Signature linear_signature = {"linear", 3, linear_names, /*transposed_b=*/true};
Signature unrecorded_linear_signature = {"_linear", 3, linear_names, true, /*recorded=*/false};

template <Signature& signature, PyObject* (*body)(const Signature&, const Arguments&)>
PyObject* entry(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) noexcept {
  try {
    return body(signature, parse(signature, args, count, keywords));
  } catch (...) {
    set_python_error(std::current_exception());
    return nullptr;
  }
}

template <Signature& signature, PyObject* (*body)(const Signature&, const Arguments&)>
PyObject* make_function(PyObject* module, const char* doc) {
  static PyMethodDef definition = {
      signature.function,
      reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&entry<signature, body>)),
      METH_FASTCALL | METH_KEYWORDS, doc};
  return PyCFunction_NewEx(&definition, module, attribute(module, "__name__").get());
}

}  // namespace

DType dtype_from(PyObject* object) {
  if (PyUnicode_Check(object)) return dtype_from_name(to_string(object));
  for (const char* attribute_name : {"name", "__name__"}) {
    Ref name = optional_attribute(object, attribute_name);
    if (name && PyUnicode_Check(name.get())) return dtype_from_name(to_string(name.get()));
  }
  const std::string text = to_string(object);
  return dtype_from_name(text.substr(text.rfind('.') + 1));
}

void offer_nvrtc_folders() {
  static bool offered = false;
  if (offered) return;
  Ref folders = Ref::steal(PyObject_CallMethod(
      Ref::steal(PyImport_ImportModule("fastgemm._nvrtc")).get(), "folders", nullptr));
  const Py_ssize_t count = PyList_Size(folders.get());
  for (Py_ssize_t i = 0; i < count; ++i)
    add_nvrtc_folder(to_string(PyList_GetItem(folders.get(), i)));
  offered = true;
}

void add_gemm_functions(PyObject* module) {
  const auto add = [module](const char* name, PyObject* function) {
    Ref owned = Ref::steal(function);
    if (PyObject_SetAttrString(module, name, owned.get()) < 0) throw PythonError{};
  };
  add("gemm", make_function<gemm_signature, run>(module, gemm_docstring));
  add("_gemm", make_function<unrecorded_signature, run>(module, unrecorded_docstring));
  add("_linear",
      make_function<unrecorded_linear_signature, run>(module, unrecorded_linear_docstring));
  add("linear", make_function<linear_signature, run>(module, linear_docstring));
  add("_describe_call", make_function<describe_signature, describe>(module, describe_docstring));
}

}  // namespace fastgemm::python
