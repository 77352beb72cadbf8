// What a call fuses with its product: its arguments located, named, and placed along the result.
#include "fused_call.hpp"

#include <map>
#include <string>

#include "call.hpp"
#include "fastgemm/error.hpp"

namespace fastgemm::python {
namespace {

using As = NamedParts::As;

// Parts of the call that have a name, in the order in which an expression names them.
struct NamedPart {
  Argument argument;
  const char* name;
  As NamedParts::* as;
};
constexpr NamedPart named_parts[] = {{arg_scale_a, "scale_a", &NamedParts::scale_a},
                                     {arg_scale_b, "scale_b", &NamedParts::scale_b},
                                     {arg_bias, "bias", &NamedParts::bias},
                                     {arg_residual, "residual", &NamedParts::residual},
                                     {arg_c, "c", &NamedParts::c},
                                     {arg_keep, "keep", &NamedParts::keep},
                                     {arg_amax, "amax", &NamedParts::amax},
                                     {arg_out_scale, "out_scale", &NamedParts::out_scale}};

// Those that numbers can be too.
bool is_scale(Argument argument) {
  return argument == arg_scale_a || argument == arg_scale_b || argument == arg_out_scale;
}

// A Python or NumPy scalar, as opposed to an array of any number of dimensions.
bool is_number(PyObject* object) {
  if (PyFloat_Check(object) || PyLong_Check(object)) return true;
  return PyNumber_Check(object) && !PyObject_HasAttrString(object, "__dlpack__");
}

std::int64_t elements(const Operand& x) {
  std::int64_t count = 1;
  for (int i = 0; i < x.ndim; ++i) count *= x.shape[i];
  return count;
}

// How an array is indexed, which its shape says.
As kind_of(Argument argument, const Operand& x) {
  if (argument == arg_residual || argument == arg_c || argument == arg_keep) return As::element;
  if (argument == arg_amax) return As::tensor;
  if (argument != arg_bias) {
    if (elements(x) == 1) return As::tensor;
    const bool of_rows = x.ndim > 1 && x.shape[x.ndim - 1] == 1;
    if (argument == arg_out_scale) return of_rows ? As::row : As::column;
    return argument == arg_scale_a ? As::row : As::column;
  }
  if (x.ndim == 1 || (x.ndim > 1 && x.shape[x.ndim - 2] == 1)) return As::column;
  if (x.ndim > 1 && x.shape[x.ndim - 1] == 1) return As::row;
  throw InvalidValue("bias has shape " + x.shape_text() +
                     ", but it is a value for each column, (n,), or for each row, (m, 1); an array "
                     "of the result's shape is added as residual=");
}

GateOrder gate_order_from(PyObject* object) {
  const std::string text = PyUnicode_Check(object) ? to_string(object) : std::string();
  if (text == "interleaved") return GateOrder::interleaved;
  if (text == "blocked") return GateOrder::blocked;
  throw InvalidValue(
      "gated is " + (text.empty() ? "a " + type_name(object) : "'" + text + "'") +
      "; it is \"interleaved\" (gate and up by turns) or \"blocked\" (all gates, then all ups)");
}

// The epilogue of named parts; those that were asked for before are found by a number.
std::shared_ptr<const Epilogue> named_epilogue(const NamedParts& parts) {
  static auto& known =
      *new std::map<std::pair<std::int64_t, std::string>, std::shared_ptr<const Epilogue>>;
  std::int64_t code = parts.gated;
  for (const NamedPart& part : named_parts) code = code << 3 | static_cast<int>(parts.*part.as);
  auto& epilogue = known[{code, parts.activation}];
  if (epilogue) return epilogue;
  std::vector<std::string> arrays;
  for (const NamedPart& part : named_parts)
    if (parts.*part.as != As::number) arrays.emplace_back(part.name);
  try {
    return epilogue = parse_epilogue(named_expression(parts), arrays);
  } catch (const InvalidValue&) {
    known.erase({code, parts.activation});
    throw;
  }
}

void locate_named(const Arguments& given, Call& call, GradMode* grad_mode) {
  FusedCall& fused = call.fused;
  for (const NamedPart& part : named_parts) {
    PyObject* object = given[part.argument];
    if (!object || (part.argument == arg_c && call.matmul.beta == 0.0f)) continue;
    if (is_scale(part.argument) && is_number(object)) {
      fused.parts.*part.as = As::number;
      fused.numbers.push_back(to_float(object, part.name));
      continue;
    }
    if (part.argument == arg_c) fused.numbers.push_back(call.matmul.beta);
    fused.arguments.push_back(part.argument);
    fused.arrays.push_back(std::make_unique<Operand>());
    fused.arrays.back()->locate(part.name, object, grad_mode);
  }
  if (given[arg_gated]) {
    fused.parts.gated = true;
    fused.gate_order = gate_order_from(given[arg_gated]);
  }
  if (!given[arg_activation]) return;
  if (!PyUnicode_Check(given[arg_activation]))
    throw InvalidType("activation is a " + type_name(given[arg_activation]) +
                      ", not the name of one: \"relu\", \"gelu\", \"silu\" ...");
  fused.parts.activation = to_string(given[arg_activation]);
}

bool seen(const FusedCall& fused, const std::string& name) {
  for (const auto& x : fused.arrays)
    if (name == x->role) return true;
  return false;
}

void locate_bound(const Arguments& given, Call& call, GradMode* grad_mode) {
  const BoundEpilogue* bound = epilogue_in(given[arg_epilogue]);
  if (!bound)
    throw InvalidType("epilogue is a " + type_name(given[arg_epilogue]) +
                      ", not a fastgemm.Epilogue");
  for (Argument other : {arg_bias, arg_c, arg_activation, arg_scale_a, arg_scale_b, arg_residual,
                         arg_keep, arg_amax, arg_out_scale, arg_gated})
    if (given[other])
      throw InvalidValue(
          "epilogue is given together with a part that has a name of its own; write that part in "
          "the expression");
  FusedCall& fused = call.fused;
  fused.epilogue = bound->epilogue;
  fused.numbers = bound->numbers;
  fused.gate_order = bound->gate_order;
  for (std::size_t i = 0; i < bound->arrays.size(); ++i) {
    if (i > 0 && bound->epilogue->arrays[i].part != ArrayPart::result &&
        seen(fused, bound->epilogue->arrays[i].name))
      continue;
    fused.arrays.push_back(std::make_unique<Operand>());
    fused.arrays.back()->locate(bound->epilogue->arrays[i].name.c_str(), bound->arrays[i].get(),
                                grad_mode);
  }
}

}  // namespace

void locate_fused(const Arguments& given, Call& call, GradMode* grad_mode) {
  if (given[arg_epilogue]) return locate_bound(given, call, grad_mode);
  for (Argument part : {arg_bias, arg_activation, arg_scale_a, arg_scale_b, arg_residual, arg_keep,
                        arg_amax, arg_out_scale, arg_gated})
    if (given[part]) return locate_named(given, call, grad_mode);
}

void place_fused(Call& call) {
  FusedCall& fused = call.fused;
  if (!fused.given()) return;
  for (std::size_t i = 0; i < fused.arguments.size(); ++i)
    for (const NamedPart& part : named_parts)
      if (part.argument == fused.arguments[i])
        fused.parts.*part.as = kind_of(part.argument, *fused.arrays[i]);
  if (!fused.epilogue) fused.epilogue = named_epilogue(fused.parts);
  const Epilogue& e = *fused.epilogue;
  Matmul& matmul = call.matmul;
  if (e.gated && matmul.shape.n % 2 != 0)
    throw InvalidValue("a gated epilogue makes one column of two, but the product has " +
                       std::to_string(matmul.shape.n) + " columns");
  matmul.epilogue = fused.epilogue;
  matmul.numbers = fused.numbers;
  matmul.gate_order = fused.gate_order;
  // A named array may stand in the expression twice: for gate and up.
  for (const Epilogue::Array& array : e.arrays)
    for (const auto& x : fused.arrays)
      if (array.name == x->role) {
        matmul.arrays.push_back(place_array(matmul.shape, *x, array));
        break;
      }
}

BoundEpilogue bind_epilogue(const std::string& expression, PyObject* values,
                            const std::string& device_code, PyObject* gated) {
  std::vector<std::string> names, arrays;
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (PyDict_Next(values, &at, &key, &value)) {
    names.push_back(to_string(key));
    if (!is_number(value)) arrays.push_back(names.back());
  }
  BoundEpilogue bound;
  bound.epilogue = parse_epilogue(expression, arrays, device_code);
  const auto find = [&](const std::string& name) {
    PyObject* found = PyDict_GetItemString(values, name.c_str());
    if (!found)
      throw InvalidValue("the epilogue '" + expression + "' uses '" + name +
                         "'; pass it by that name");
    return found;
  };
  const Epilogue& e = *bound.epilogue;
  if (e.gated && gated == Py_None)
    throw InvalidValue("the epilogue '" + expression +
                       "' is gated: say how, gated=\"interleaved\" or \"blocked\"");
  if (!e.gated && gated != Py_None)
    throw InvalidValue("gated is given, but the epilogue '" + expression +
                       "' uses neither gate nor up");
  if (e.gated) bound.gate_order = gate_order_from(gated);
  for (const Epilogue::Array& array : e.arrays) {
    if (is_number(find(array.name)))
      throw InvalidValue("the epilogue '" + expression + "' indexes '" + array.name +
                         "', which is a number; write it without an index");
    bound.arrays.push_back(Ref::borrow(find(array.name)));
  }
  for (const std::string& name : e.numbers)
    bound.numbers.push_back(to_float(find(name), name.c_str()));
  for (const std::string& name : names) {
    bool used = false;
    for (const Epilogue::Array& array : e.arrays) used = used || array.name == name;
    for (const std::string& number : e.numbers) used = used || number == name;
    if (!used)
      throw InvalidValue("'" + name + "' is given, but the epilogue '" + expression +
                         "' does not use it");
  }
  return bound;
}

void set_planned_fusion(PyObject* object, GemmProblem& p) {
  auto fusion = std::make_shared<Fusion>();
  const BoundEpilogue* bound = epilogue_in(object);
  if (!bound && !PyUnicode_Check(object))
    throw InvalidType("epilogue is a " + type_name(object) +
                      ", not an expression or a fastgemm.Epilogue");
  fusion->epilogue = bound ? bound->epilogue : parse_epilogue(to_string(object));
  if (bound) fusion->gate_order = bound->gate_order;
  p.fusion = fusion;
  if (p.gated()) {
    p.d.row_stride = p.d_cols();
    p.d.batch_stride /= 2;
  }
  for (const Epilogue::Array& array : fusion->epilogue->arrays) {
    const bool along_m = array.kind == ArrayKind::row || array.kind == ArrayKind::element;
    const bool along_n = array.kind == ArrayKind::column || array.kind == ArrayKind::element;
    const bool is_amax = array.written && array.kind == ArrayKind::tensor;
    fusion->arrays.push_back({nullptr, is_amax ? DType::f32 : p.a.dtype,
                              along_m ? (along_n ? p.d_cols() : 1) : 0, along_n ? 1 : 0,
                              along_m && along_n ? p.d.batch_stride : 0});
  }
  fusion->numbers.resize(fusion->epilogue->numbers.size());
}

}  // namespace fastgemm::python
