// A problem's fused epilogue: how its arrays lie for the kernel, and what is refused.
#include "fusion.hpp"

#include <algorithm>
#include <utility>

#include "canonical.hpp"
#include "fastgemm/error.hpp"
#include "overlap.hpp"

namespace fastgemm {
namespace {

constexpr int ACCESS_BITS = 4;  // of an array: its dtype, then whether it is wide

bool is_wide(const MatrixView& v, ArrayKind kind, const GemmProblem& p) {
  if (kind == ArrayKind::tensor || kind == ArrayKind::row || v.col_stride != 1 ||
      p.d_cols() % 16 != 0)
    return false;
  const auto size = static_cast<std::int64_t>(size_of(v.dtype));
  std::uint64_t bits = reinterpret_cast<std::uintptr_t>(v.data);
  if (p.batch > 1) bits |= static_cast<std::uint64_t>(v.batch_stride * size);
  if (p.d_rows() > 1) bits |= static_cast<std::uint64_t>(v.row_stride * size);
  return bits % 16 == 0;
}

std::string shown(const Epilogue::Array& array) {
  static constexpr const char* indices[] = {"", "[m]", "[n]", "[m, n]"};
  return array.name + indices[static_cast<int>(array.kind)];
}

}  // namespace

MatrixView fused_array(const GemmProblem& p, std::size_t i) {
  MatrixView view = p.fusion->arrays[i];
  const ArrayPart part = p.fusion->epilogue->arrays[i].part;
  if (part != ArrayPart::result) {  // a value of each column of the product
    const GateColumns columns = gate_columns(p);
    const std::int64_t first = part == ArrayPart::up ? columns.offset * view.col_stride : 0;
    if (view.data)
      view.data =
          static_cast<char*>(view.data) + first * static_cast<std::int64_t>(size_of(view.dtype));
    view.col_stride *= columns.step;
  }
  if (p.fusion_transposed) std::swap(view.row_stride, view.col_stride);
  return view;
}

ArrayKind fused_kind(const Epilogue& epilogue, std::size_t i, bool transposed) {
  const ArrayKind kind = epilogue.arrays[i].kind;
  if (!transposed) return kind;
  return kind == ArrayKind::row      ? ArrayKind::column
         : kind == ArrayKind::column ? ArrayKind::row
                                     : kind;
}

std::uint32_t fused_access(const GemmProblem& p) {
  std::uint32_t accesses = 0;
  if (!p.fusion) return accesses;
  for (std::size_t i = 0; i < p.fusion->arrays.size(); ++i) {
    const MatrixView view = fused_array(p, i);
    const ArrayKind kind = fused_kind(*p.fusion->epilogue, i, p.fusion_transposed);
    const std::uint32_t wide = is_wide(view, kind, p) ? 8 : 0;
    accesses |= (static_cast<std::uint32_t>(view.dtype) | wide) << (ACCESS_BITS * i);
  }
  return accesses;
}

FusedAccess access_of(std::uint32_t accesses, std::size_t i) {
  const std::uint32_t bits = accesses >> (ACCESS_BITS * i);
  return {static_cast<DType>(bits & 7), (bits & 8) != 0};
}

std::uint64_t fused_id(const GemmProblem& p) {
  if (!p.fusion) return 0;
  const std::uint64_t how = std::uint64_t{fused_access(p)} << 1 | (p.fusion_transposed ? 1 : 0);
  return (p.fusion->epilogue->hash ^ how) * 0x9e3779b97f4a7c15u | 1;
}

std::uint64_t fused_ids(const GemmProblem& p) {
  return p.fusion ? fused_id(p) ^ fused_id(transposed(p)) << 1 : 0;
}

GateColumns gate_columns(const GemmProblem& p) {
  if (p.fusion->gate_order == GateOrder::interleaved) return {2, 1};
  return {1, (p.fusion_transposed ? p.m : p.n) / 2};
}

const char* refuse_gated_tiles(const GemmProblem& p) {
  const bool rows = p.fusion_transposed;
  if (p.batch > 1) return "gates of a batch";
  if ((rows ? p.m : p.n) % 16 != 0) return "the gated columns are no whole eights";
  if ((rows ? p.a.col_stride : p.b.row_stride) != 1)
    return "the gated operand is not contiguous along k";
  return nullptr;
}

void check_fusion(const GemmProblem& p) {
  if (!p.fusion) return;
  const Fusion& f = *p.fusion;
  if (!f.epilogue) throw InvalidValue("the fusion has no epilogue: make it with fuse()");
  if (p.has_c())
    throw InvalidValue(
        "an epilogue and beta * C: add C in the expression, as in acc + beta * c[m, n]");
  if (f.arrays.size() != f.epilogue->arrays.size() ||
      f.numbers.size() != f.epilogue->numbers.size())
    throw InvalidValue("the epilogue '" + f.epilogue->expression + "' needs " +
                       std::to_string(f.epilogue->arrays.size()) + " arrays and " +
                       std::to_string(f.epilogue->numbers.size()) + " numbers, not " +
                       std::to_string(f.arrays.size()) + " and " +
                       std::to_string(f.numbers.size()));
  if (p.gated() && (p.fusion_transposed ? p.m : p.n) % 2 != 0)
    throw InvalidValue("a gated epilogue makes one column of two, but the product has " +
                       std::to_string(p.fusion_transposed ? p.m : p.n) + " columns");
  for (std::size_t i = 0; i < f.arrays.size(); ++i) {
    const MatrixView view = fused_array(p, i);
    const ArrayKind kind = fused_kind(*f.epilogue, i, p.fusion_transposed);
    const std::string name = shown(f.epilogue->arrays[i]);
    if (view.dtype > DType::f32)
      throw InvalidType("'" + name + "' is " + fastgemm::name(view.dtype) +
                        "; arrays of an epilogue are float16, bfloat16 or float32");
    if (f.epilogue->arrays[i].written && kind == ArrayKind::tensor && view.dtype != DType::f32)
      throw InvalidType(std::string("amax is ") + fastgemm::name(view.dtype) +
                        "; it has to be one float32");
    const bool along_m = p.d_rows() > 1 && view.row_stride != 0;
    const bool along_n = p.d_cols() > 1 && view.col_stride != 0;
    if ((along_m && (kind == ArrayKind::tensor || kind == ArrayKind::column)) ||
        (along_n && (kind == ArrayKind::tensor || kind == ArrayKind::row)))
      throw InvalidValue("'" + name + "' has strides (" + std::to_string(view.row_stride) + ", " +
                         std::to_string(view.col_stride) +
                         "): they have to be 0 along what it does not depend on");
  }
}

std::shared_ptr<const Fusion> fuse(const std::string& expression,
                                   const std::vector<std::pair<std::string, FusedValue>>& values,
                                   const std::string& device_code, GateOrder gate_order) {
  std::vector<std::string> arrays;
  for (const auto& [name, value] : values)
    if (std::holds_alternative<MatrixView>(value)) arrays.push_back(name);
  auto fusion = std::make_shared<Fusion>();
  fusion->epilogue = parse_epilogue(expression, arrays, device_code);
  fusion->gate_order = gate_order;
  const Epilogue& e = *fusion->epilogue;
  const auto find = [&](const std::string& name) -> const FusedValue& {
    for (const auto& [given, value] : values)
      if (given == name) return value;
    throw InvalidValue("the epilogue '" + expression + "' uses '" + name + "', which is not given");
  };
  for (const Epilogue::Array& array : e.arrays) {
    const auto* view = std::get_if<MatrixView>(&find(array.name));
    if (!view)
      throw InvalidValue("the epilogue '" + expression + "' uses '" + shown(array) +
                         "' as an array, but a number is given");
    fusion->arrays.push_back(*view);
  }
  for (const std::string& name : e.numbers) fusion->numbers.push_back(std::get<float>(find(name)));
  for (const auto& [name, value] : values) {
    const auto is = [&given = name](const std::string& used) { return used == given; };
    if (std::none_of(e.arrays.begin(), e.arrays.end(), [&](const auto& a) { return is(a.name); }) &&
        std::none_of(e.numbers.begin(), e.numbers.end(), is))
      throw InvalidValue("'" + name + "' is given, but the epilogue '" + expression +
                         "' does not use it");
  }
  return fusion;
}

}  // namespace fastgemm
