// Writes an epilogue as the struct that the kernel template takes, and named parts as expressions.
#include <algorithm>
#include <cstdio>

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

}  // namespace

const char* device_type(DType t) {
  return t == DType::f16 ? "Float16" : t == DType::bf16 ? "Bfloat16" : "Float32";
}

std::string epilogue_source(const KernelConfig& k) {
  const Epilogue& e = *k.epilogue;
  std::string comment = e.expression, members, places, values;
  std::replace_if(
      comment.begin(), comment.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  const auto place = [&](const std::string& name, const std::string& from) {
    places += std::string(places.empty() ? "\n      : " : ", ") + name + "(" + from + ")";
  };
  for (std::size_t i = 0; i < e.arrays.size(); ++i) {
    const std::string name = e.arrays[i].name, reader = "read_" + name;
    members +=
        "  " +
        reader_type(fused_kind(e, i, k.epilogue_transposed), access_of(k.epilogue_access, i)) +
        " " + reader + ";\n";
    place(reader, "p.array[" + std::to_string(i) + "], at");
    values +=
        "    const auto " + name + "_ = " + reader + ".template at<COUNT>(row, col, valid);\n";
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
  s += "  template <int COUNT>\n";
  s += "  FASTGEMM_DEVICE void apply(float (&acc)[COUNT], int row, int col, int valid) const {\n";
  s += values + "#pragma unroll\n";
  s += "    for (int i = 0; i < COUNT; ++i) acc[i] = " + e.code + ";\n";
  s += "  }\n};\n";
  return s;
}

std::string named_expression(const NamedParts& parts) {
  using As = NamedParts::As;
  static constexpr const char* activations[] = {"relu", "gelu",    "gelu_tanh",
                                                "silu", "sigmoid", "tanh"};
  static constexpr const char* indices[] = {"", "", "", "[m]", "[n]", "[m, n]"};
  std::string s = "acc";
  const auto add = [&](const char* operation, const char* name, As as) {
    if (as != As::absent) s += operation + std::string(name) + indices[static_cast<int>(as)];
  };
  add(" * ", "scale_a", parts.scale_a);
  add(" * ", "scale_b", parts.scale_b);
  add(" + ", "bias", parts.bias);
  add(" + ", "residual", parts.residual);
  add(" + beta * ", "c", parts.c);
  if (parts.activation.empty()) return s;
  std::string known;
  for (const char* name : activations) {
    if (parts.activation == name) return parts.activation + "(" + s + ")";
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw InvalidValue("unknown activation '" + parts.activation + "'; there are " + known);
}

}  // namespace fastgemm
