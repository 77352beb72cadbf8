// The shape rules of numpy.matmul, and the GemmProblems that a product of N-dimensional arrays
// consists of.
#include "matmul.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include "fastgemm/device/params.cuh"
#include "fastgemm/error.hpp"

namespace fastgemm::python {
namespace {

std::string shapes(const Operand& a, const Operand& b) {
  return std::string(a.role) + " of shape " + a.shape_text() + " and " + b.role + " of shape " +
         b.shape_text();
}

std::string shape_text(const MatmulShape& shape) {
  std::int64_t extents[max_dims];
  shape.result_shape(extents);
  std::string text = "(";
  for (int i = 0; i < shape.result_ndim(); ++i)
    text += (i ? ", " : "") + std::to_string(extents[i]);
  return text + (shape.result_ndim() == 1 ? ",)" : ")");
}

int batch_ndim(const Operand& x) { return std::max(0, x.ndim - 2); }

// The stride of `x` along the batch dimension `i` of `shape`.
std::int64_t batch_stride(const MatmulShape& shape, const Operand& x, int x_batch_ndim, int i) {
  const int dim = i - (shape.batch_ndim - x_batch_ndim);
  return dim < 0 || (x.shape[dim] == 1 && shape.batch[i] != 1) ? 0 : x.strides[dim];
}

void place_batch(const MatmulShape& shape, const Operand& x, int x_batch_ndim,
                 Placement& placement) {
  placement.data = x.data;
  placement.dtype = x.dtype;
  for (int i = 0; i < shape.batch_ndim; ++i)
    placement.batch_strides[i] = batch_stride(shape, x, x_batch_ndim, i);
}

// Batch dimensions of one product, as few as they can be: a dimension joins its outer neighbour
// where every operand can walk both with one stride.
struct Batches {
  static constexpr int most_operands = 4 + EPILOGUE_ARRAYS;  // a, b, c, d, and what is fused
  int operands = 4;
  int ndim = 0;
  std::int64_t extent[max_dims];
  std::int64_t stride[most_operands][max_dims];

  void append(std::int64_t steps, const std::array<std::int64_t, most_operands>& strides) {
    if (steps == 1) return;
    bool joins = ndim > 0;
    for (int o = 0; o < operands && joins; ++o) joins = stride[o][ndim - 1] == strides[o] * steps;
    if (!joins) extent[ndim++] = 1;
    extent[ndim - 1] *= steps;
    for (int o = 0; o < operands; ++o) stride[o][ndim - 1] = strides[o];
  }

  void swap(int i, int j) {
    std::swap(extent[i], extent[j]);
    for (auto& s : stride) std::swap(s[i], s[j]);
  }
};

Batches batches_of(const Matmul& matmul) {
  Batches batches;
  batches.operands = 4 + static_cast<int>(matmul.arrays.size());
  for (int i = 0; i < matmul.shape.batch_ndim; ++i) {
    std::array<std::int64_t, Batches::most_operands> strides = {
        matmul.a.batch_strides[i], matmul.b.batch_strides[i],
        matmul.beta != 0 ? matmul.c.batch_strides[i] : 0, matmul.d.batch_strides[i]};
    for (std::size_t x = 0; x < matmul.arrays.size(); ++x)
      strides[4 + x] = matmul.arrays[x].batch_strides[i];
    batches.append(matmul.shape.batch[i], strides);
  }
  return batches;
}

MatrixView view_of(const Placement& placement) {
  MatrixView view;
  view.data = placement.data;
  view.dtype = placement.dtype;
  view.row_stride = placement.row_stride;
  view.col_stride = placement.col_stride;
  return view;
}

void advance(MatrixView& view, std::int64_t elements) {
  if (view.data)
    view.data =
        static_cast<char*>(view.data) + elements * static_cast<std::int64_t>(size_of(view.dtype));
}

// The bytes that one operand of all products uses.
ByteRange total_range(const MatrixView& view, std::int64_t rows, std::int64_t cols,
                      const Batches& batches, int operand) {
  ByteRange range = byte_range(view, 1, rows, cols);
  for (int i = 0; i < batches.ndim; ++i) {
    const std::int64_t bytes = (batches.extent[i] - 1) * batches.stride[operand][i] *
                               static_cast<std::int64_t>(size_of(view.dtype));
    (bytes < 0 ? range.begin : range.end) += bytes;
  }
  return range;
}

// Whether no two indices of D are one place, by the usual argument: each stride exceeds what the
// smaller ones reach together.
bool distinct(const GemmProblem& problem, std::int64_t d_cols, const Batches& batches) {
  std::array<std::pair<std::int64_t, std::int64_t>, max_dims + 2> dims;
  int count = 0;
  auto add = [&](std::int64_t stride, std::int64_t extent) {
    if (extent > 1) dims[count++] = {stride < 0 ? -stride : stride, extent};
  };
  add(problem.d.row_stride, problem.m);
  add(problem.d.col_stride, d_cols);
  for (int i = 0; i < batches.ndim; ++i) add(batches.stride[3][i], batches.extent[i]);
  std::sort(dims.begin(), dims.begin() + count);
  std::int64_t reach = 0;
  for (int i = 0; i < count; ++i) {
    if (dims[i].first <= reach) return false;
    reach += dims[i].first * (dims[i].second - 1);
  }
  return true;
}

void check_separate(const GemmProblem& problem, const Fusion& fusion, std::int64_t d_cols,
                    const Batches& batches) {
  if (!problem.d.data) return;
  if (!distinct(problem, d_cols, batches))
    throw InvalidValue("out has two elements in one place; pass an array with memory of its own");
  const ByteRange d = total_range(problem.d, problem.m, d_cols, batches, 3);
  auto check = [&](const char* role, const MatrixView& view, std::int64_t rows, std::int64_t cols,
                   int operand) {
    if (rows == 0 || cols == 0) return;
    const ByteRange other = total_range(view, rows, cols, batches, operand);
    if (d.begin < other.end && other.begin < d.end)
      throw InvalidValue(std::string("out overlaps ") + role +
                         "; pass an array with memory of its own");
  };
  check("a", problem.a, problem.m, problem.k, 0);
  check("b", problem.b, problem.k, problem.n, 1);
  const auto in_place = [&](const MatrixView& view, int operand) {
    return view.data == problem.d.data && view.dtype == problem.d.dtype &&
           view.row_stride == problem.d.row_stride && view.col_stride == problem.d.col_stride &&
           std::equal(batches.stride[operand], batches.stride[operand] + batches.ndim,
                      batches.stride[3]);
  };
  if (problem.has_c() && !in_place(problem.c, 2)) check("c", problem.c, problem.m, problem.n, 2);
  for (std::size_t i = 0; i < fusion.arrays.size(); ++i) {
    const int operand = 4 + static_cast<int>(i);
    if (!in_place(fusion.arrays[i], operand))
      check(fusion.epilogue->arrays[i].name.c_str(), fusion.arrays[i], problem.m, problem.n,
            operand);
  }
}

}  // namespace

void MatmulShape::result_shape(std::int64_t* shape) const {
  shape = std::copy(batch, batch + batch_ndim, shape);
  if (!a_is_vector) *shape++ = m;
  if (!b_is_vector) *shape++ = result_cols();
}

bool MatmulShape::result_empty() const {
  return m == 0 || n == 0 || std::find(batch, batch + batch_ndim, 0) != batch + batch_ndim;
}

MatmulShape matmul_shape(const Operand& a, const Operand& b) {
  for (const Operand* x : {&a, &b})
    if (x->ndim == 0)
      throw InvalidValue("matrix product of " + shapes(a, b) + ": " + x->role +
                         " is a scalar, but at least one dimension is needed");
  MatmulShape shape;
  shape.a_is_vector = a.ndim == 1;
  shape.b_is_vector = b.ndim == 1;
  shape.m = shape.a_is_vector ? 1 : a.shape[a.ndim - 2];
  shape.n = shape.b_is_vector ? 1 : b.shape[b.ndim - 1];
  shape.k = a.shape[a.ndim - 1];
  const std::int64_t b_rows = shape.b_is_vector ? b.shape[0] : b.shape[b.ndim - 2];
  if (shape.k != b_rows)
    throw InvalidValue("matrix product of " + shapes(a, b) + ": the last dimension of a (" +
                       std::to_string(shape.k) + ") must be the " +
                       (shape.b_is_vector ? "" : "last but one ") + "dimension of b (" +
                       std::to_string(b_rows) + ")");
  const int a_ndim = batch_ndim(a), b_ndim = batch_ndim(b);
  shape.batch_ndim = std::max(a_ndim, b_ndim);
  for (int i = 0; i < shape.batch_ndim; ++i) {
    const int in_a = i - (shape.batch_ndim - a_ndim), in_b = i - (shape.batch_ndim - b_ndim);
    const std::int64_t of_a = in_a < 0 ? 1 : a.shape[in_a], of_b = in_b < 0 ? 1 : b.shape[in_b];
    if (of_a != of_b && of_a != 1 && of_b != 1)
      throw InvalidValue("matrix product of " + shapes(a, b) + ": the batch dimensions " +
                         std::to_string(of_a) + " and " + std::to_string(of_b) +
                         " do not broadcast (they must be equal, or one of them 1)");
    shape.batch[i] = of_a == 1 ? of_b : of_a;
  }
  return shape;
}

Placement place_a(const MatmulShape& shape, const Operand& a) {
  Placement placement;
  place_batch(shape, a, batch_ndim(a), placement);
  placement.row_stride = shape.a_is_vector ? 0 : a.strides[a.ndim - 2];
  placement.col_stride = a.strides[a.ndim - 1];
  return placement;
}

Placement place_b(const MatmulShape& shape, const Operand& b) {
  Placement placement;
  place_batch(shape, b, batch_ndim(b), placement);
  placement.row_stride = b.strides[shape.b_is_vector ? 0 : b.ndim - 2];
  placement.col_stride = shape.b_is_vector ? 0 : b.strides[b.ndim - 1];
  return placement;
}

Placement place_c(const MatmulShape& shape, const Operand& c) {
  std::int64_t extents[max_dims];
  shape.result_shape(extents);
  const int ndim = shape.result_ndim(), missing = ndim - c.ndim;
  std::int64_t strides[max_dims];
  bool fits = missing >= 0;
  for (int i = 0; i < ndim && fits; ++i) {
    const int dim = i - missing;
    const bool broadcast = dim < 0 || (c.shape[dim] == 1 && extents[i] != 1);
    fits = broadcast || c.shape[dim] == extents[i];
    if (fits) strides[i] = broadcast ? 0 : c.strides[dim];
  }
  if (!fits)
    throw InvalidValue(std::string(c.role) + " has shape " + c.shape_text() +
                       ", which does not broadcast to " + shape_text(shape) +
                       ", the shape of the product");
  Placement placement;
  placement.data = c.data;
  placement.dtype = c.dtype;
  std::copy(strides, strides + shape.batch_ndim, placement.batch_strides);
  if (!shape.a_is_vector) placement.row_stride = strides[shape.batch_ndim];
  if (!shape.b_is_vector) placement.col_stride = strides[ndim - 1];
  return placement;
}

Placement place_out(const MatmulShape& shape, const Operand& out) {
  std::int64_t extents[max_dims];
  shape.result_shape(extents);
  if (out.ndim != shape.result_ndim() || !std::equal(extents, extents + out.ndim, out.shape))
    throw InvalidValue(std::string(out.role) + " has shape " + out.shape_text() +
                       ", but the product has shape " + shape_text(shape));
  return place_c(shape, out);
}

Placement place_array(const MatmulShape& shape, const Operand& x, const Epilogue::Array& array) {
  if (array.kind == ArrayKind::element)
    return array.written ? place_out(shape, x) : place_c(shape, x);
  const bool of_rows = array.kind == ArrayKind::row, of_columns = array.kind == ArrayKind::column;
  const bool of_product = array.part != ArrayPart::result;
  const std::int64_t rows = of_rows ? shape.m : 1;
  const std::int64_t cols = !of_columns ? 1 : of_product ? shape.n : shape.result_cols();
  // One dimension, or two with a 1 and before them those of the batch.
  const int trailing = x.ndim < 2 ? x.ndim : 2, leading = x.ndim - trailing;
  bool fits = leading <= shape.batch_ndim;
  if (trailing == 2)
    fits = fits && x.shape[x.ndim - 2] == rows && x.shape[x.ndim - 1] == cols;
  else
    fits = fits && (trailing == 0 ? rows * cols == 1 : x.shape[0] == rows * cols);
  for (int i = 0; i < leading && fits; ++i) {
    const std::int64_t steps = shape.batch[i + shape.batch_ndim - leading];
    fits = x.shape[i] == 1 || x.shape[i] == steps;
  }
  if (!fits) {
    const std::string count = std::to_string(rows * cols);
    const std::string wanted = of_rows ? "one value for each of the " + count + " rows, (" + count +
                                             ",) or (..., " + count + ", 1)"
                               : of_columns ? "one value for each of the " + count + " columns, (" +
                                                  count + ",) or (..., 1, " + count + ")"
                                            : "one element";
    throw InvalidValue(std::string(x.role) + " has shape " + x.shape_text() + "; the " +
                       (of_product ? "gates and ups of the " : "") + "product of shape " +
                       shape_text(shape) + " needs " + wanted);
  }
  Placement placement;
  place_batch(shape, x, leading, placement);
  if (of_rows) placement.row_stride = x.strides[trailing == 2 ? x.ndim - 2 : 0];
  if (of_columns) placement.col_stride = x.strides[x.ndim - 1];
  return placement;
}

Placement place_new(const MatmulShape& shape, void* data, DType dtype) {
  Placement placement;
  placement.data = data;
  placement.dtype = dtype;
  placement.row_stride = shape.result_cols();
  placement.col_stride = 1;
  std::int64_t packed = shape.m * shape.result_cols();
  for (int i = shape.batch_ndim - 1; i >= 0; --i) {
    placement.batch_strides[i] = packed;
    packed *= shape.batch[i];
  }
  return placement;
}

void for_each_problem(const Matmul& matmul, const std::function<void(const GemmProblem&)>& run) {
  if (matmul.shape.result_empty()) return;
  GemmProblem problem;
  problem.m = matmul.shape.m;
  problem.n = matmul.shape.n;
  problem.k = matmul.shape.k;
  problem.a = view_of(matmul.a);
  problem.b = view_of(matmul.b);
  problem.c = view_of(matmul.c);
  problem.d = view_of(matmul.d);
  problem.alpha = matmul.alpha;
  problem.beta = matmul.beta;

  Fusion fusion{matmul.epilogue, {}, matmul.numbers, matmul.gate_order};
  for (const Placement& array : matmul.arrays) fusion.arrays.push_back(view_of(array));

  Batches batches = batches_of(matmul);
  if (batches.ndim > 1) check_separate(problem, fusion, matmul.shape.result_cols(), batches);
  MatrixView* views[Batches::most_operands] = {&problem.a, &problem.b, &problem.c, &problem.d};
  for (std::size_t i = 0; i < fusion.arrays.size(); ++i) views[4 + i] = &fusion.arrays[i];
  if (batches.ndim > 0) {
    const auto largest =
        std::max_element(batches.extent, batches.extent + batches.ndim) - batches.extent;
    batches.swap(static_cast<int>(largest), --batches.ndim);
    problem.batch = batches.extent[batches.ndim];
    for (int o = 0; o < batches.operands; ++o)
      views[o]->batch_stride = batches.stride[o][batches.ndim];
  }

  std::int64_t index[max_dims] = {};
  for (;;) {
    if (fusion.epilogue) problem.fusion = std::make_shared<Fusion>(fusion);
    run(problem);
    int dim = 0;
    for (; dim < batches.ndim; ++dim) {
      for (int o = 0; o < batches.operands; ++o) advance(*views[o], batches.stride[o][dim]);
      if (++index[dim] < batches.extent[dim]) break;
      for (int o = 0; o < batches.operands; ++o)
        advance(*views[o], -batches.stride[o][dim] * batches.extent[dim]);
      index[dim] = 0;
    }
    if (dim == batches.ndim) return;
  }
}

}  // namespace fastgemm::python
