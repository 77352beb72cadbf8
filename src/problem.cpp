// GemmProblem: its dtypes, the bytes it touches, how it is made and how it is written.
#include "fastgemm/problem.hpp"

#include <algorithm>
#include <cctype>

#include "fastgemm/error.hpp"
#include "overlap.hpp"

namespace fastgemm {
namespace {

std::int64_t narrow(Int128 value, const char* what) {
  const auto narrowed = static_cast<std::int64_t>(value);
  if (narrowed != value) throw InvalidValue(std::string(what) + " needs more than 64 bits");
  return narrowed;
}

// How a matrix lies in memory, judged by the extents that have more than one step.
struct Lie {
  bool by_rows;  // contiguous along its columns ("n")
  bool by_cols;  // contiguous along its rows ("t")
  bool packed;   // nothing between its rows, columns and batches
};

Lie lie_of(const MatrixView& v, std::int64_t batch, std::int64_t rows, std::int64_t cols) {
  const auto is = [](std::int64_t stride, std::int64_t steps, Int128 value) {
    return steps <= 1 || stride == value;
  };
  Lie lie{is(v.col_stride, cols, 1), is(v.row_stride, rows, 1), false};
  lie.packed =
      is(v.batch_stride, batch, Int128{rows} * cols) &&
      (lie.by_rows ? is(v.row_stride, rows, cols) : lie.by_cols && is(v.col_stride, cols, rows));
  return lie;
}

std::string strides(const char* name, const MatrixView& v, std::int64_t batch) {
  const std::string first = batch > 1 ? std::to_string(v.batch_stride) + ", " : "";
  return std::string(", ") + name + " strides (" + first + std::to_string(v.row_stride) + ", " +
         std::to_string(v.col_stride) + ")";
}

char letter(const Lie& lie) { return lie.by_rows ? 'n' : lie.by_cols ? 't' : 's'; }

}  // namespace

const char* name(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return "float16";
    case DType::bf16:
      return "bfloat16";
    case DType::f32:
      return "float32";
    case DType::i8:
      return "int8";
    case DType::e4m3:
      return "float8_e4m3fn";
    case DType::e5m2:
      return "float8_e5m2";
  }
  return "unknown dtype";
}

DType dtype_from_name(std::string_view text) {
  std::string s;
  for (char c : text) s += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (s == "float16" || s == "fp16" || s == "f16" || s == "half") return DType::f16;
  if (s == "bfloat16" || s == "bf16") return DType::bf16;
  if (s == "float32" || s == "fp32" || s == "f32") return DType::f32;
  for (DType narrow : {DType::i8, DType::e4m3, DType::e5m2})
    if (s == name(narrow)) return narrow;
  throw InvalidType("unsupported dtype '" + std::string(text) +
                    "': operands are float16 or bfloat16, outputs also float32, int8, "
                    "float8_e4m3fn or float8_e5m2");
}

GemmProblem packed_problem(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype,
                           std::string_view layout, std::int64_t batch,
                           std::optional<DType> out_dtype, bool has_c) {
  const auto known = [](char c) { return c == 'n' || c == 't'; };
  std::string letters;
  for (char c : layout) letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (letters.size() != 2 || !known(letters[0]) || !known(letters[1]))
    throw InvalidValue("unknown layout '" + std::string(layout) +
                       "': it is nn, nt, tn or tt, for A then B");

  const auto packed = [&](DType type, char how, std::int64_t rows, std::int64_t cols) {
    MatrixView view{nullptr, type, how == 'n' ? cols : 1, how == 'n' ? 1 : rows};
    view.batch_stride =
        batch == 1 ? 0 : narrow(Int128{rows} * cols, "the batch stride of a packed array");
    return view;
  };
  GemmProblem p;
  p.batch = batch, p.m = m, p.n = n, p.k = k;
  p.a = packed(dtype, letters[0], m, k);
  p.b = packed(dtype, letters[1], k, n);
  p.d = packed(out_dtype.value_or(dtype), 'n', m, n);
  p.c = p.d;
  p.beta = has_c ? 1.0f : 0.0f;
  validate(p);
  return p;
}

std::string describe(const GemmProblem& p) {
  const Lie a = lie_of(p.a, p.batch, p.m, p.k), b = lie_of(p.b, p.batch, p.k, p.n);
  const Lie c = lie_of(p.c, p.batch, p.m, p.n), d = lie_of(p.d, p.batch, p.d_rows(), p.d_cols());
  std::string text =
      std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k) + " ";
  text += letter(a);
  text += letter(b);
  text += std::string(" ") + name(p.a.dtype);
  if (p.d.dtype != p.a.dtype) text += std::string(" -> ") + name(p.d.dtype);
  if (p.batch != 1) text += ", batch " + std::to_string(p.batch);
  if (p.has_c()) text += ", plus C";
  if (p.fusion) text += ", " + p.fusion->epilogue->expression;
  if (p.m == 0 || p.n == 0 || p.batch == 0) return text;
  if (p.k > 0 && !a.packed) text += strides("A", p.a, p.batch);
  if (p.k > 0 && !b.packed) text += strides("B", p.b, p.batch);
  if (p.has_c() && !(c.packed && c.by_rows)) text += strides("C", p.c, p.batch);
  if (!(d.packed && d.by_rows)) text += strides("D", p.d, p.batch);
  return text;
}

ByteRange byte_range(const MatrixView& view, std::int64_t batch, std::int64_t rows,
                     std::int64_t cols) {
  const auto base = reinterpret_cast<std::intptr_t>(view.data);
  if (batch <= 0 || rows <= 0 || cols <= 0) return {base, base};
  const Span span = span_of(axes_of(view, batch, rows, cols));
  const Int128 size = static_cast<Int128>(size_of(view.dtype));
  return {narrow(base + span.begin * size, "the first address of a view"),
          narrow(base + span.end * size, "the last address of a view")};
}

}  // namespace fastgemm
