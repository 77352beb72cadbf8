// fastgemm.gemm as a plain CPython function: arrays in, problem, launch, array out.
#include "gemm_call.hpp"

#include <array>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "docstrings.hpp"
#include "errors.hpp"
#include "fastgemm/device_memory.hpp"
#include "fastgemm/emulate.hpp"
#include "fastgemm/gemm.hpp"
#include "frameworks.hpp"
#include "matmul.hpp"
#include "operand.hpp"

namespace fastgemm::python {
namespace {

// The arguments in the order of the signature; null where not given or None.
enum Argument {
  arg_a,
  arg_b,
  arg_c,
  arg_alpha,
  arg_beta,
  arg_out,
  arg_out_dtype,
  arg_config,
  arg_stream,
  arg_arch,
  arg_seed,
  arg_workers
};
constexpr std::array argument_names = {"a",         "b",      "c",      "alpha", "beta", "out",
                                       "out_dtype", "config", "stream", "arch",  "seed", "workers"};
constexpr Py_ssize_t positional = 2;
using Arguments = std::array<PyObject*, argument_names.size()>;

// A function that takes some of the arguments.
struct Signature {
  const char* name;
  bool emulates;  // has those of the emulator, and not the stream
  bool takes(std::size_t argument) const {
    return argument < arg_stream || (argument == arg_stream) != emulates;
  }
};

[[noreturn]] void refuse_call(const Signature& signature, const std::string& message) {
  throw InvalidType(std::string(signature.name) + "() " + message);
}

std::size_t find_argument(const Signature& signature, PyObject* name) {
  static const auto interned = [] {
    Arguments names{};
    for (std::size_t i = 0; i < names.size(); ++i)
      names[i] = PyUnicode_InternFromString(argument_names[i]);
    return names;
  }();
  for (std::size_t i = 0; i < interned.size(); ++i)
    if (name == interned[i] && signature.takes(i)) return i;
  for (std::size_t i = 0; i < interned.size(); ++i)
    if (PyUnicode_Compare(name, interned[i]) == 0 && signature.takes(i)) return i;
  refuse_call(signature, "got an unexpected keyword argument '" + to_string(name) + "'");
}

Arguments parse(const Signature& signature, PyObject* const* args, Py_ssize_t count,
                PyObject* keywords) {
  Arguments given{};
  if (count > positional)
    refuse_call(signature, "takes 2 positional arguments, a and b, but " + std::to_string(count) +
                               " were given; the others go by keyword");
  for (Py_ssize_t i = 0; i < count; ++i) given[i] = args[i];
  const Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    const std::size_t argument = find_argument(signature, PyTuple_GetItem(keywords, i));
    if (given[argument])
      refuse_call(signature, std::string("got multiple values for argument '") +
                                 argument_names[argument] + "'");
    given[argument] = args[count + i];
  }
  for (std::size_t i = positional; i < given.size(); ++i)
    if (given[i] == Py_None) given[i] = nullptr;
  if (!given[arg_a] || !given[arg_b]) refuse_call(signature, "needs a and b");
  return given;
}

float to_float(PyObject* number, const char* name) {
  const double value = PyFloat_AsDouble(number);
  if (value == -1.0 && PyErr_Occurred()) {
    PyErr_Clear();
    throw InvalidType(std::string(name) + " is a " + type_name(number) + ", not a real number");
  }
  return static_cast<float>(value);
}

// A call whose arguments have all been read and checked: nothing has been allocated or enqueued
// yet.
struct Call {
  Operand a, b, c, out;
  Matmul matmul;
  DType out_dtype = DType::f16;
  GemmConfig config;
  Stream stream = nullptr;
  bool explicit_stream = false;
  bool waits = false;  // the product must be there when the call returns
  int device = host_device;

  std::array<Operand*, 4> operands() { return {&a, &b, &c, &out}; }
};

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
  for (const Operand* x : call.operands())
    if (x->object && first->managed && !x->managed) first = x;
  call.device = first->device;
  for (const Operand* x : call.operands()) {
    if (!x->object || x->device == call.device || (x->managed && call.device != host_device))
      continue;
    std::string where;
    for (const Operand* y : call.operands())
      if (y->object)
        where += std::string(where.empty() ? "" : ", ") + y->role + " (" + type_name(y->object) +
                 ") on " + y->device_name();
    throw InvalidValue("operands in different places: " + where +
                       "; move them to one device, or all to the host");
  }
}

void choose_stream(const Arguments& given, Call& call) {
  if (call.device == host_device) {
    if (given[arg_stream])
      throw InvalidValue("stream is given, but the operands are in host memory");
    return;
  }
  call.explicit_stream = given[arg_stream] != nullptr;
  call.stream = given[arg_stream] ? stream_from(given[arg_stream]) : current_stream(call.a);
  for (const Operand* x : call.operands()) {
    if (!x->object) continue;
    const bool stays =
        call.explicit_stream ? x->type.framework != Framework::jax : shares_stream(call.a, *x);
    if (!stays) call.waits = true;
  }
}

void read_operands(Call& call) {
  for (Operand* x : call.operands()) {
    if (!x->object) continue;
    const bool ordered =
        call.explicit_stream || call.device == host_device || shares_stream(call.a, *x);
    if (!x->complete || !ordered) x->read(dlpack_stream(call.stream));
  }
}

void check_dtypes(const Arguments& given, Call& call) {
  std::optional<DType> wanted;
  if (given[arg_out_dtype]) wanted = dtype_from(given[arg_out_dtype]);
  call.out_dtype = call.out.object ? call.out.dtype : wanted.value_or(call.a.dtype);
  const bool in = call.a.dtype == call.b.dtype && call.a.dtype != DType::f32;
  const bool out = call.out_dtype == call.a.dtype || call.out_dtype == DType::f32;
  const bool c = !call.c.object || call.c.dtype == call.out_dtype;
  if (in && out && c && wanted.value_or(call.out_dtype) == call.out_dtype) return;
  std::string got;
  for (const Operand* x : call.operands())
    if (x->object) got += std::string(x->role) + " " + fastgemm::name(x->dtype) + ", ";
  if (wanted) got += std::string("out_dtype ") + fastgemm::name(*wanted) + ", ";
  throw InvalidType("unsupported dtypes: " + got + "result " + fastgemm::name(call.out_dtype) +
                    "; " + dtype_table);
}

void check_out(const Call& call) {
  if (call.out.type.framework == Framework::jax)
    throw InvalidType("out is a JAX array, which is immutable; use the returned array");
  if (call.out.read_only) throw InvalidValue("out is read-only");
}

void prepare(const Arguments& given, Call& call) {
  read_numbers(given, call);
  GradMode grad_mode;
  call.a.locate("a", given[arg_a], grad_mode);
  call.b.locate("b", given[arg_b], grad_mode);
  if (given[arg_c]) call.c.locate("c", given[arg_c], grad_mode);
  if (given[arg_out]) call.out.locate("out", given[arg_out], grad_mode);
  check_devices(call);
  choose_stream(given, call);
  read_operands(call);
  if (given[arg_out]) check_out(call);
  check_dtypes(given, call);

  Matmul& matmul = call.matmul;
  matmul.shape = matmul_shape(call.a, call.b);
  matmul.a = place_a(matmul.shape, call.a);
  matmul.b = place_b(matmul.shape, call.b);
  if (given[arg_c]) matmul.c = place_c(matmul.shape, call.c);
  matmul.d = given[arg_out] ? place_out(matmul.shape, call.out)
                            : place_new(matmul.shape, nullptr, call.out_dtype);
}

class ReleasedGil {
 public:
  ReleasedGil() : state_(PyEval_SaveThread()) {}
  ReleasedGil(const ReleasedGil&) = delete;
  ~ReleasedGil() { PyEval_RestoreThread(state_); }

 private:
  PyThreadState* state_;
};

// Says once that there is no GPU, if there is none.
bool emulates_instead(const Call& call) {
  if (call.device != host_device) return false;
  static const bool has_gpu = !devices().empty();
  static bool said = false;
  if (!has_gpu && !std::exchange(said, true) &&
      PyErr_WarnEx(PyExc_RuntimeWarning,
                   "there is no GPU: fastgemm.gemm() runs its kernels for sm_80 on the CPU, in the "
                   "emulator, which is right but slow",
                   1) < 0)
    throw PythonError{};
  return !has_gpu;
}

EmulatorReport emulate_all(const Call& call, const HardwareSpec& hardware,
                           const EmulatorOptions& options) {
  ReleasedGil released;
  EmulatorReport report;
  for_each_problem(call.matmul, [&](const GemmProblem& problem) {
    report.add(fastgemm::emulate(problem, hardware, call.config, options));
  });
  return report;
}

void launch(const Call& call) {
  if (emulates_instead(call)) {
    emulate_all(call, hardware("sm_80"), {});
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

PyObject* run(const Arguments& given) {
  Call call;
  prepare(given, call);
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

EmulatorOptions options_from(const Arguments& given) {
  EmulatorOptions options;
  if (given[arg_seed]) options.seed = static_cast<std::uint64_t>(to_integer(given[arg_seed]));
  if (given[arg_workers]) {
    const long long workers = to_integer(given[arg_workers]);
    if (workers < 1 || workers > 1024)
      throw InvalidValue("workers is " + std::to_string(workers) + ", expected 1 to 1024");
    options.workers = static_cast<int>(workers);
  }
  return options;
}

PyObject* run_emulator(const Arguments& given) {
  Call call;
  prepare(given, call);
  if (call.device != host_device)
    throw InvalidValue("emulate() runs on the CPU: a is on " + call.a.device_name() +
                       ", move all operands to the host");
  const HardwareSpec hardware = hardware_in(given[arg_arch]);
  const EmulatorOptions options = options_from(given);
  if (call.out.object) {
    const EmulatorReport report = emulate_all(call, hardware, options);
    return Py_BuildValue("(ON)", call.out.object, report_object(report));
  }
  Result result(call.a, call.matmul.shape, call.out_dtype, nullptr, false);
  call.matmul.d.data = result.data();
  const EmulatorReport report = emulate_all(call, hardware, options);
  return Py_BuildValue("(NN)", result.finish(), report_object(report));
}

Ref describe_view(const MatrixView& view) {
  return Ref::steal(Py_BuildValue(
      "{s:K,s:s,s:(LLL)}", "data",
      static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(view.data)), "dtype",
      fastgemm::name(view.dtype), "strides", static_cast<long long>(view.batch_stride),
      static_cast<long long>(view.row_stride), static_cast<long long>(view.col_stride)));
}

Ref describe_problem(const GemmProblem& p) {
  return Ref::steal(Py_BuildValue(
      "{s:(LLLL),s:N,s:N,s:N,s:N,s:d,s:d}", "batch_m_n_k", static_cast<long long>(p.batch),
      static_cast<long long>(p.m), static_cast<long long>(p.n), static_cast<long long>(p.k), "a",
      describe_view(p.a).release(), "b", describe_view(p.b).release(), "c",
      describe_view(p.c).release(), "d", describe_view(p.d).release(), "alpha",
      static_cast<double>(p.alpha), "beta", static_cast<double>(p.beta)));
}

PyObject* describe(const Arguments& given) {
  Call call;
  prepare(given, call);
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

constexpr Signature gemm_signature{"gemm", false}, emulate_signature{"emulate", true};

template <const Signature& signature, PyObject* (*body)(const Arguments&)>
PyObject* entry(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) noexcept {
  try {
    return body(parse(signature, args, count, keywords));
  } catch (...) {
    set_python_error(std::current_exception());
    return nullptr;
  }
}

template <const Signature& signature, PyObject* (*body)(const Arguments&)>
PyObject* make_function(PyObject* module, const char* name, const char* doc) {
  static PyMethodDef definition = {
      name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&entry<signature, body>)),
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

PyObject* make_gemm_function(PyObject* module) {
  return make_function<gemm_signature, run>(module, "gemm", gemm_docstring);
}

PyObject* make_emulate_function(PyObject* module) {
  return make_function<emulate_signature, run_emulator>(module, "emulate", emulate_docstring);
}

PyObject* make_describe_function(PyObject* module) {
  return make_function<gemm_signature, describe>(module, "_describe_call", describe_docstring);
}

}  // namespace fastgemm::python
