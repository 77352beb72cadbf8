// The product that is asked for: extents, strides, dtypes and pointers, and what follows from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fastgemm/export.hpp"

namespace fastgemm {

enum class DType : std::uint8_t { f16, bf16, f32 };

FASTGEMM_API const char* name(DType dtype);  // "float16", "bfloat16", "float32"
FASTGEMM_API DType
dtype_from_name(std::string_view name);  // also "fp16", "half", "bf16" ...; throws InvalidType
constexpr std::size_t size_of(DType dtype) { return dtype == DType::f32 ? 4 : 2; }

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

// D[batch, m, n] = alpha * A[batch, m, k] * B[batch, k, n] + beta * C[batch, m, n].
// A and B: float16 or bfloat16, both the same. D: the dtype of A, or float32. C: the dtype of D; it
// is not read where beta is 0 and may be D itself. Products are exact, sums are float32, D is
// rounded once.
struct GemmProblem {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  MatrixView a, b, c, d;
  float alpha = 1.0f, beta = 0.0f;

  bool has_c() const { return beta != 0.0f; }
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
