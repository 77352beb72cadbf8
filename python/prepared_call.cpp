// fastgemm.prepare and what it returns: a call whose arguments are read once.
#include "prepared_call.hpp"

#include <exception>
#include <string>
#include <vector>

#include "call.hpp"
#include "docstrings.hpp"
#include "errors.hpp"
#include "fastgemm/error.hpp"
#include "frameworks.hpp"
#include "gemm_call.hpp"

namespace fastgemm::python {
namespace {

Signature signature = {
    "prepare",
    2,
    {"a", "b", "bias", "c", "alpha", "beta", "activation", "scale_a", "scale_b", "residual", "keep",
     "amax", "out_scale", "gated", "epilogue", "out", "out_dtype", "config", "stream"}};

// Only arrays.
Signature rebind_signature = {
    "rebind",
    2,
    {"a", "b", "bias", "c", nullptr, nullptr, nullptr, "scale_a", "scale_b", "residual", "keep",
     "amax", "out_scale", nullptr, "epilogue", "out", nullptr, nullptr, nullptr}};

struct Prepared {
  Arguments arguments{};  // owned: what was given, and `out` in any case
  std::vector<GemmProblem> problems;
  std::vector<PreparedGemm> launches;
  TypeInfo type;  // of a: whose current stream is taken
  int device = 0;
  Stream stream = nullptr;
  bool explicit_stream = false;

  Prepared() = default;
  Prepared(const Prepared&) = delete;
  ~Prepared() {
    for (PyObject* argument : arguments) Py_XDECREF(argument);
  }

  void hold(Argument which, PyObject* object) {
    Py_XINCREF(object);
    Py_XDECREF(std::exchange(arguments[which], object));
  }
};

std::vector<GemmProblem> problems_of(const Call& call) {
  std::vector<GemmProblem> problems;
  for_each_problem(call.matmul,
                   [&problems](const GemmProblem& problem) { problems.push_back(problem); });
  return problems;
}

// Launches happen on one stream, without a wait: nothing else may have to be told of them.
void check_preparable(const Call& call) {
  if (call.device == host_device)
    throw InvalidValue("prepare() needs arrays on a GPU; these are in host memory");
  call.for_each_operand([](const Operand& x) {
    if (x.type.framework == Framework::jax)
      throw InvalidType(std::string(x.role) +
                        " is a JAX array, whose memory JAX may move or give away; call "
                        "fastgemm.jax.gemm inside jax.jit, which prepares it");
  });
  if (call.waits)
    throw InvalidValue(
        "prepare() cannot order the streams of several frameworks at each launch; pass stream=");
}

void prepare_launches(Prepared& prepared, const Call& call) {
  prepared.problems = problems_of(call);
  ReleasedGil released;
  for (const GemmProblem& problem : prepared.problems)
    prepared.launches.emplace_back(problem, call.config, call.device);
}

bool same_form(const MatrixView& x, const MatrixView& y) {
  return x.dtype == y.dtype && x.row_stride == y.row_stride && x.col_stride == y.col_stride &&
         x.batch_stride == y.batch_stride;
}

// Numbers may differ: kernels take them as arguments.
bool same_form(const Fusion* x, const Fusion* y) {
  if (!x || !y) return x == y;
  if (x->epilogue->hash != y->epilogue->hash) return false;
  for (std::size_t i = 0; i < x->arrays.size(); ++i)
    if (!same_form(x->arrays[i], y->arrays[i])) return false;
  return true;
}

bool same_form(const GemmProblem& x, const GemmProblem& y) {
  return same_form(x.fusion.get(), y.fusion.get()) && x.batch == y.batch && x.m == y.m &&
         x.n == y.n && x.k == y.k && same_form(x.a, y.a) && same_form(x.b, y.b) &&
         same_form(x.c, y.c) && same_form(x.d, y.d);
}

struct Object {
  PyObject_HEAD Prepared* prepared;
};

Prepared& prepared_in(PyObject* self) { return *reinterpret_cast<Object*>(self)->prepared; }

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<Object*>(self)->prepared;
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

template <typename Body>
PyObject* guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    set_python_error(std::current_exception());
    return nullptr;
  }
}

PyObject* launch(PyObject* self, PyObject* args, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    if (PyTuple_Size(args) != 0 || (keywords && PyDict_Size(keywords) != 0))
      throw InvalidType("a prepared call takes no arguments; see rebind()");
    Prepared& prepared = prepared_in(self);
    const Stream stream =
        prepared.explicit_stream ? prepared.stream : current_stream(prepared.type, prepared.device);
    {
      ReleasedGil released;
      for (const PreparedGemm& one : prepared.launches) one.launch(stream);
    }
    Py_INCREF(prepared.arguments[arg_out]);
    return prepared.arguments[arg_out];
  });
}

PyObject* rebind(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    Prepared& prepared = prepared_in(self);
    const Arguments fresh = parse(rebind_signature, args, count, keywords, /*all_optional=*/true);
    Arguments given = prepared.arguments;
    for (std::size_t i = 0; i < given.size(); ++i)
      if (fresh[i]) given[i] = fresh[i];
    Call call;
    read_own_call(signature, given, call);
    check_preparable(call);
    const std::vector<GemmProblem> problems = problems_of(call);
    bool same = call.device == prepared.device && problems.size() == prepared.problems.size() &&
                call.a.type.type == prepared.type.type;
    for (std::size_t i = 0; same && i < problems.size(); ++i)
      same = same_form(problems[i], prepared.problems[i]);
    if (!same)
      throw InvalidValue(
          "rebind() needs arrays of the types, shapes, strides, dtypes and device that were "
          "prepared for; prepare the new ones");
    std::vector<PreparedGemm> launches = prepared.launches;
    for (std::size_t i = 0; i < problems.size(); ++i)
      launches[i].rebind(problems[i].a.data, problems[i].b.data, problems[i].c.data,
                         problems[i].d.data, problems[i].fusion);
    prepared.launches.swap(launches);
    for (std::size_t i = 0; i < given.size(); ++i)
      prepared.hold(static_cast<Argument>(i), given[i]);
    Py_INCREF(self);
    return self;
  });
}

PyObject* get_out(PyObject* self, void*) {
  PyObject* out = prepared_in(self).arguments[arg_out];
  Py_INCREF(out);
  return out;
}

PyObject* prepared_type() {
  static PyMethodDef methods[] = {
      {"rebind", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&rebind)),
       METH_FASTCALL | METH_KEYWORDS, rebind_docstring},
      {}};
  static PyGetSetDef attributes[] = {
      {"out", &get_out, nullptr, "The array that launches write and return.", nullptr}, {}};
  static PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>(prepared_class_docstring)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(&destroy)},
                                {Py_tp_call, reinterpret_cast<void*>(&launch)},
                                {Py_tp_methods, methods},
                                {Py_tp_getset, attributes},
                                {}};
  static PyType_Spec spec = {"fastgemm.PreparedGemm", sizeof(Object), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  static PyObject* const type = Ref::steal(PyType_FromSpec(&spec)).release();
  return type;
}

PyObject* prepare(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    const Arguments given = parse(signature, args, count, keywords);
    auto prepared = std::make_unique<Prepared>();
    Call call;
    read_own_call(signature, given, call);
    check_preparable(call);
    offer_nvrtc_folders();
    for (std::size_t i = 0; i < given.size(); ++i)
      prepared->hold(static_cast<Argument>(i), given[i]);
    if (!given[arg_out]) {
      Result result(call.a, call.matmul.shape, call.out_dtype, call.stream, call.explicit_stream);
      call.matmul.d.data = result.data();
      prepared->hold(arg_out, Ref::steal(result.finish()).get());
    }
    prepared->type = call.a.type;
    prepared->device = call.device;
    prepared->stream = call.stream;
    prepared->explicit_stream = call.explicit_stream;
    prepare_launches(*prepared, call);
    auto* type = reinterpret_cast<PyTypeObject*>(prepared_type());
    auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
    Ref object = Ref::steal(allocate(type, 0));
    reinterpret_cast<Object*>(object.get())->prepared = prepared.release();
    return object.release();
  });
}

}  // namespace

PyObject* make_prepare_function(PyObject* module) {
  static PyMethodDef definition = {
      "prepare", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&prepare)),
      METH_FASTCALL | METH_KEYWORDS, prepare_docstring};
  if (PyObject_SetAttrString(module, "PreparedGemm", prepared_type()) < 0) throw PythonError{};
  return PyCFunction_NewEx(&definition, module, attribute(module, "__name__").get());
}

}  // namespace fastgemm::python
