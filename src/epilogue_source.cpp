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
    const std::string name = e.arrays[i].name, reader = "read_" + name;
    if (e.arrays[i].written) {
      const bool keep = e.arrays[i].kind == ArrayKind::element;
      members += "  " + writer_type(e.arrays[i].kind, access_of(k.epilogue_access, i)) + " " +
                 name + ";\n";
      place(name, "p.array[" + std::to_string(i) + "], at");
      if (keep) values += "    float kept[COUNT];\n";
      if (keep) stores = "    keep.store(kept, row, col, valid);\n";
      continue;
    }
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
  s += stores + "  }\n};\n";
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
  const auto apply = [&s](const std::string& function) { s = function + "(" + s + ")"; };
  if (parts.keep != As::absent) apply("keep");
  if (!parts.activation.empty()) {
    const auto is = [&](const char* name) { return parts.activation == name; };
    if (std::none_of(std::begin(activations), std::end(activations), is)) {
      std::string known;
      for (const char* name : activations) known += (known.empty() ? "" : ", ") + std::string(name);
      throw InvalidValue("unknown activation '" + parts.activation + "'; there are " + known);
    }
    apply(parts.activation);
  }
  if (parts.amax != As::absent) apply("amax");
  if (parts.out_scale == As::absent) return s;
  if (s.back() != ')' && s != "acc") apply("");
  add(" * (1 / ", "out_scale", parts.out_scale);
  return s + ")";
}

}  // namespace fastgemm
