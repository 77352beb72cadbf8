// Writes an epilogue as the struct that the kernel template takes, and named parts as expressions.
#include <algorithm>
#include <iterator>

#include "fastgemm/error.hpp"
#include "fusion.hpp"

namespace fastgemm {
namespace {

std::string reader_type(ArrayKind kind, const FusedAccess& access) {
  const std::string element = device_type(access.dtype),
                    wide = access.wide ? ", true>" : ", false>";
  switch (kind) {
    case ArrayKind::tensor:
      return "PerTensor<" + element + ">";
    case ArrayKind::row:
      return "PerRow<" + element + ">";
    case ArrayKind::column:
      return "PerColumn<" + element + wide;
    default:
      return "PerElement<" + element + wide;
  }
}

constexpr const char* ACTIVATIONS[] = {"relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh"};

void check_activation(const std::string& activation) {
  const auto is = [&](const char* name) { return activation == name; };
  if (std::any_of(std::begin(ACTIVATIONS), std::end(ACTIVATIONS), is)) return;
  std::string known;
  for (const char* name : ACTIVATIONS) known += (known.empty() ? "" : ", ") + std::string(name);
  throw InvalidValue("unknown activation '" + activation + "'; there are " + known);
}

std::string indexed(const char* name, NamedParts::As as, const char* column = "n") {
  using As = NamedParts::As;
  const std::string index = as == As::row       ? "[m]"
                            : as == As::column  ? std::string("[") + column + "]"
                            : as == As::element ? "[m, n]"
                                                : "";
  return name + index;
}

// What the result of all before is divided by.
std::string quantised(const std::string& value, NamedParts::As out_scale) {
  if (out_scale == NamedParts::As::absent) return value;
  return value + " * (1 / " + indexed("out_scale", out_scale) + ")";
}

// activation(gate) * up, each with its scales and bias before.
std::string gated_expression(const NamedParts& parts) {
  using As = NamedParts::As;
  if (parts.activation.empty())
    throw InvalidValue("a gated epilogue needs an activation, such as silu");
  if (parts.residual != As::absent || parts.c != As::absent || parts.keep != As::absent)
    throw InvalidValue(
        "residual, c and keep are of the product, of which a gated epilogue makes half as many "
        "columns: write what is meant as an expression of gate and up");
  check_activation(parts.activation);
  const auto side = [&](const char* name) {
    std::string s = name;
    if (parts.scale_a != As::absent) s += " * " + indexed("scale_a", parts.scale_a);
    if (parts.scale_b != As::absent) s += " * " + indexed("scale_b", parts.scale_b, name);
    if (parts.bias != As::absent) s += " + " + indexed("bias", parts.bias, name);
    return s;
  };
  const bool sum = parts.bias != As::absent;
  std::string s = parts.activation + "(" + side("gate") + ") * " + (sum ? "(" : "") + side("up") +
                  (sum ? ")" : "");
  if (parts.amax != As::absent) s = "amax(" + s + ")";
  return quantised(s, parts.out_scale);
}

std::string writer_type(ArrayKind kind, const FusedAccess& access) {
  if (kind == ArrayKind::tensor) return "LargestMagnitude";
  return std::string("KeptElements<") + device_type(access.dtype) +
         (access.wide ? ", true>" : ", false>");
}

}  // namespace

const char* device_type(DType t) {
  static constexpr const char* types[] = {"Float16", "Bfloat16",   "Float32",
                                          "Int8",    "Float8E4M3", "Float8E5M2"};
  return types[static_cast<int>(t)];
}

std::string epilogue_source(const KernelConfig& k) {
  const Epilogue& e = *k.epilogue;
  std::string comment = e.expression, members, places, values, stores;
  std::replace_if(
      comment.begin(), comment.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  const auto place = [&](const std::string& name, const std::string& from) {
    places += std::string(places.empty() ? "\n      : " : ", ") + name + "(" + from + ")";
  };
  for (std::size_t i = 0; i < e.arrays.size(); ++i) {
    static constexpr const char* parts[] = {"_", "_gate", "_up"};
    const std::string name = e.arrays[i].name,
                      value = name + parts[static_cast<int>(e.arrays[i].part)];
    const std::string reader = "read_" + value;
    if (e.arrays[i].written) {
      const bool keep = e.arrays[i].kind == ArrayKind::element;
      members += "  " + writer_type(e.arrays[i].kind, access_of(k.epilogue_access, i)) + " " +
                 name + ";\n";
      place(name, "p.array[" + std::to_string(i) + "], at");
      if (keep) values += "    float kept[Columns::COUNT];\n";
      if (keep) stores = "    keep.template store<Columns>(kept, row, col, valid);\n";
      continue;
    }
    members +=
        "  " +
        reader_type(fused_kind(e, i, k.epilogue_transposed), access_of(k.epilogue_access, i)) +
        " " + reader + ";\n";
    place(reader, "p.array[" + std::to_string(i) + "], at");
    values +=
        "    const auto " + value + " = " + reader + ".template at<Columns>(row, col, valid);\n";
  }
  for (std::size_t i = 0; i < e.numbers.size(); ++i) {
    members += "  float " + e.numbers[i] + "_;\n";
    place(e.numbers[i] + "_", "p.number[" + std::to_string(i) + "]");
  }
  std::string s;
  if (!e.device_code.empty()) s += e.device_code + "\n";
  s += "struct Epilogue {  // " + comment + "\n";
  s += "  static constexpr bool ACTIVE = true;\n" + members;
  s += "  FASTGEMM_DEVICE Epilogue(const EpilogueParams& p, const TileOrigin& at)" + places +
       " {}\n";
  s += "  template <class Columns>\n";
  const std::string sums = e.gated
                               ? "float (&gate)[Columns::COUNT], const float (&up)[Columns::COUNT],"
                               : "float (&acc)[Columns::COUNT],";
  s += "  FASTGEMM_DEVICE void apply(" + sums + " int row, int col, int valid) const {\n";
  s += values + "#pragma unroll\n";
  s += std::string("    for (int i = 0; i < Columns::COUNT; ++i) ") + (e.gated ? "gate" : "acc") +
       "[i] = " + e.code + ";\n";
  s += stores + "  }\n};\n";
  return s;
}

std::string named_expression(const NamedParts& parts) {
  using As = NamedParts::As;
  if (parts.gated) return gated_expression(parts);
  std::string s = "acc";
  const auto add = [&](const char* operation, const char* name, As as) {
    if (as != As::absent) s += operation + indexed(name, as);
  };
  add(" * ", "scale_a", parts.scale_a);
  add(" * ", "scale_b", parts.scale_b);
  add(" + ", "bias", parts.bias);
  add(" + ", "residual", parts.residual);
  add(" + beta * ", "c", parts.c);
  const auto apply = [&s](const std::string& function) { s = function + "(" + s + ")"; };
  if (parts.keep != As::absent) apply("keep");
  if (!parts.activation.empty()) {
    check_activation(parts.activation);
    apply(parts.activation);
  }
  if (parts.amax != As::absent) apply("amax");
  if (parts.out_scale != As::absent && s.back() != ')' && s != "acc") apply("");
  return quantised(s, parts.out_scale);
}

}  // namespace fastgemm
