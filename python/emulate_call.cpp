// fastgemm.emulate: arrays in, products on the emulated machine, array and report out.
#include "emulate_call.hpp"

#include <exception>
#include <string>
#include <utility>

#include "docstrings.hpp"
#include "errors.hpp"
#include "frameworks.hpp"
#include "matmul.hpp"

namespace fastgemm::python {
namespace {

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

PyObject* run(const Signature& signature, const Arguments& given) {
  Call call;
  read_own_call(signature, given, call);
  if (call.device != host_device)
    throw InvalidValue("emulate() runs on the CPU: a is on " + call.a.device_name() +
                       ", move all operands to the host");
  const HardwareSpec hardware = hardware_in(given[arg_arch]);
  const EmulatorOptions options = options_from(given);
  if (call.out.object) {
    const EmulatorReport report = emulate_call(call, hardware, options);
    return Py_BuildValue("(ON)", call.out.object, report_object(report));
  }
  Result result(call.a, call.matmul.shape, call.out_dtype, nullptr, false);
  call.matmul.d.data = result.data();
  const EmulatorReport report = emulate_call(call, hardware, options);
  return Py_BuildValue("(NN)", result.finish(), report_object(report));
}

Signature emulate_signature = {
    "emulate", 2, {"a",          "b",       "bias",     "c",        "alpha",     "beta",
                   "activation", "scale_a", "scale_b",  "residual", "keep",      "amax",
                   "out_scale",  "gated",   "epilogue", "out",      "out_dtype", "config",
                   nullptr,      "arch",    "seed",     "workers"}};

PyObject* entry(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) noexcept {
  try {
    return run(emulate_signature, parse(emulate_signature, args, count, keywords));
  } catch (...) {
    set_python_error(std::current_exception());
    return nullptr;
  }
}

}  // namespace

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

EmulatorReport emulate_call(const Call& call, const HardwareSpec& hardware,
                            const EmulatorOptions& options) {
  ReleasedGil released;
  EmulatorReport report;
  for_each_problem(call.matmul, [&](const GemmProblem& problem) {
    report.add(fastgemm::emulate(problem, hardware, call.config, options));
  });
  return report;
}

PyObject* make_emulate_function(PyObject* module) {
  static PyMethodDef definition = {
      "emulate", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&entry)),
      METH_FASTCALL | METH_KEYWORDS, emulate_docstring};
  return PyCFunction_NewEx(&definition, module, attribute(module, "__name__").get());
}

}  // namespace fastgemm::python
