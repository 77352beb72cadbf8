// The product that is asked for: extents, strides, dtypes and pointers, and what follows from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "fastgemm/epilogue.hpp"
#include "fastgemm/export.hpp"

namespace fastgemm {

// Those of 8 bits are for D alone: quantised, to the nearest and saturating.
enum class DType : std::uint8_t { f16, bf16, f32, i8, e4m3, e5m2 };

FASTGEMM_API const char* name(DType dtype);  // "float16", "int8", "float8_e4m3fn" ...
FASTGEMM_API DType
dtype_from_name(std::string_view name);  // also "fp16", "half", "bf16" ...; throws InvalidType
constexpr std::size_t size_of(DType dtype) {
  return dtype == DType::f32 ? 4 : dtype < DType::f32 ? 2 : 1;
}

// Where a matrix (of a batch) lies: element (batch, row, col) is
// data[batch * batch_stride + row * row_stride + col * col_stride]. Strides count elements; 0 and
// negative strides are allowed in operands. The extents stand in GemmProblem, once.
struct MatrixView {
  void* data = nullptr;
  DType dtype = DType::f16;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 0;
  std::int64_t batch_stride = 0;
};

// An epilogue with what it reads. Arrays lie as matrices of the result's extents, with strides of 0
// along what they do not depend on; float16, bfloat16 or float32. They may not overlap D, except
// that one of element kind may be D itself. Those that are written may overlap nothing; `amax` is
// raised from the value that it has, so set it to 0 first.
struct Fusion {
  std::shared_ptr<const Epilogue> epilogue;
  std::vector<MatrixView> arrays;  // in the order of epilogue->arrays
  std::vector<float> numbers;      // in the order of epilogue->numbers
  GateOrder gate_order = GateOrder::interleaved;
};

// A vector with a value for each row or for each column of the result, or one value for all.
inline MatrixView per_row(void* data, DType dtype, std::int64_t stride = 1) {
  return {data, dtype, stride, 0, 0};
}
inline MatrixView per_column(void* data, DType dtype, std::int64_t stride = 1) {
  return {data, dtype, 0, stride, 0};
}
inline MatrixView per_tensor(void* data, DType dtype) { return {data, dtype, 0, 0, 0}; }

// Binds the names of an expression: parse_epilogue() says what it may contain. Throws InvalidValue
// that points at the column, or names what is missing or not used.
using FusedValue = std::variant<float, MatrixView>;
FASTGEMM_API std::shared_ptr<const Fusion> fuse(
    const std::string& expression,
    const std::vector<std::pair<std::string, FusedValue>>& values = {},
    const std::string& device_code = {}, GateOrder gate_order = GateOrder::interleaved);

// D[batch, m, n] = alpha * A[batch, m, k] * B[batch, k, n] + beta * C[batch, m, n].
// A and B: float16 or bfloat16, both the same. D: the dtype of A, float32, or 8 bits: int8 (NaN
// becomes 0), float8_e4m3fn, float8_e5m2. C: the dtype of D, not of 8 bits; it is not read where
// beta is 0 and may be D itself. Products are exact, sums are float32, D is rounded once. With a
// fusion D is what its epilogue makes of alpha * A * B, and beta is 0.
struct GemmProblem {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  MatrixView a, b, c, d;
  float alpha = 1.0f, beta = 0.0f;
  std::shared_ptr<const Fusion> fusion;
  bool fusion_transposed = false;  // the library's: the arrays are meant for D transposed

  bool has_c() const { return beta != 0.0f; }

  // The extents of D: m x n, but that a gated epilogue makes one column of two.
  bool gated() const { return fusion && fusion->epilogue && fusion->epilogue->gated; }
  std::int64_t d_rows() const { return gated() && fusion_transposed ? m / 2 : m; }
  std::int64_t d_cols() const { return gated() && !fusion_transposed ? n / 2 : n; }
};

// A problem over freshly allocated, packed arrays (data = nullptr counts as aligned). `layout` is
// two letters, for A then B: 'n' is stored as written (m x k, k x n, row-major), 't' is stored
// transposed. "nt" is the layout of a linear layer, whose weight is (n, k). D has A's dtype unless
// `out_dtype` says otherwise. Throws InvalidValue, InvalidType.
FASTGEMM_API GemmProblem packed_problem(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype,
                                        std::string_view layout = "nt", std::int64_t batch = 1,
                                        std::optional<DType> out_dtype = {}, bool has_c = false);

// Refuses what cannot be computed: negative or excessive extents, unsupported dtypes, D with two
// elements in one place, D overlapping A, B or (unless identical) C. Throws InvalidValue or
// InvalidType.
FASTGEMM_API void validate(const GemmProblem& problem);

// The same product in the one form that kernels take: strides of extents 1 and 0 are made harmless,
// and D's rows are the contiguous ones (a column-major D becomes D^T = B^T A^T).
FASTGEMM_API GemmProblem canonical(const GemmProblem& problem);

// "4096x4096x4096 nt float16" and, where they matter, batch, output dtype and strides.
FASTGEMM_API std::string describe(const GemmProblem& problem);

// The range of bytes [begin, end) that a view of batch x rows x cols elements touches.
struct ByteRange {
  std::intptr_t begin, end;
};
FASTGEMM_API ByteRange byte_range(const MatrixView& view, std::int64_t batch, std::int64_t rows,
                                  std::int64_t cols);

}  // namespace fastgemm
