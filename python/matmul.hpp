// The shape rules of numpy.matmul, and the GemmProblems that a product of N-dimensional arrays
// consists of.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "fastgemm/problem.hpp"
#include "operand.hpp"

namespace fastgemm::python {

// result[batch..., m, n] = a[batch..., m, k] b[batch..., k, n]; a vector lacks m or n in the result
// too.
struct MatmulShape {
  std::int64_t m = 0, n = 0, k = 0;
  bool a_is_vector = false, b_is_vector = false;
  bool gated = false;  // the result has half of the n columns
  int batch_ndim = 0;
  std::int64_t batch[max_dims];

  std::int64_t result_cols() const { return gated ? n / 2 : n; }
  int result_ndim() const { return batch_ndim + !a_is_vector + !b_is_vector; }
  void result_shape(std::int64_t* shape) const;
  bool result_empty() const;
};

// Throws InvalidValue with both shapes where numpy.matmul would.
MatmulShape matmul_shape(const Operand& a, const Operand& b);

// One operand over all of a result's dimensions: stride 0 where it is broadcast or lacks the
// dimension.
struct Placement {
  void* data = nullptr;
  DType dtype = DType::f16;
  std::int64_t row_stride = 0, col_stride = 0;
  std::int64_t batch_strides[max_dims];
};

Placement place_a(const MatmulShape& shape, const Operand& a);
Placement place_b(const MatmulShape& shape, const Operand& b);
// C and D: broadcast to the result's shape, which `out` must have exactly. Throws InvalidValue.
Placement place_c(const MatmulShape& shape, const Operand& c);
Placement place_out(const MatmulShape& shape, const Operand& out);
Placement place_new(const MatmulShape& shape, void* data, DType dtype);  // packed, row-major

// An array that an epilogue indexes: of `row` kind (m,) or (..., m, 1), of `column` kind (n,) or
// (..., 1, n), of `element` kind broadcast to the result's shape, of `tensor` kind one element. n
// counts the result's columns, or the product's where gate and up have a value each.
Placement place_array(const MatmulShape& shape, const Operand& operand,
                      const Epilogue::Array& array);

struct Matmul {
  MatmulShape shape;
  Placement a, b, c, d;
  float alpha = 1.0f, beta = 0.0f;
  std::shared_ptr<const Epilogue> epilogue;  // null: none
  std::vector<Placement> arrays;             // of the epilogue
  std::vector<float> numbers;
  GateOrder gate_order = GateOrder::interleaved;
};

// The products to compute, in order: one wherever the batch dimensions can be walked with one
// stride, else one for every index of the others. None where the result is empty. Throws
// InvalidValue where products of different indices would overlap in memory; within one, validate()
// looks.
void for_each_problem(const Matmul& matmul, const std::function<void(const GemmProblem&)>& run);

}  // namespace fastgemm::python
