// Brings a problem into the one form that kernels take.
#include "canonical.hpp"

#include <utility>

#include "fusion.hpp"
#include "overlap.hpp"

namespace fastgemm {
namespace {

// A pitch that keeps rows of `extent` elements 16-byte aligned.
std::int64_t aligned_pitch(std::int64_t extent, DType dtype) {
  const std::int64_t chunk = 16 / static_cast<std::int64_t>(size_of(dtype));
  return extent > 0 ? (extent + chunk - 1) / chunk * chunk : chunk;
}

void pack(MatrixView& view, std::int64_t cols) {
  view.row_stride = aligned_pitch(cols, view.dtype);
  view.col_stride = 1;
  view.batch_stride = 0;
}

// An operand may have its unit stride in either place; where one extent is a single step, that
// step's stride is free, so it becomes the pitch of a contiguous vector or the unit stride of a
// strided one.
void free_operand(MatrixView& view, std::int64_t batch, std::int64_t rows, std::int64_t cols) {
  if (batch == 1) view.batch_stride = 0;
  if (rows == 1 && cols == 1) view.col_stride = 1;
  if (rows == 1 && view.col_stride == 1)
    view.row_stride = aligned_pitch(cols, view.dtype);
  else if (rows == 1)
    view.row_stride = 1;
  else if (cols == 1 && view.row_stride == 1)
    view.col_stride = aligned_pitch(rows, view.dtype);
  else if (cols == 1)
    view.col_stride = 1;
}

// C and D keep their rows as rows, so that C can be D.
void free_result(MatrixView& view, std::int64_t batch, std::int64_t rows, std::int64_t cols) {
  if (batch == 1) view.batch_stride = 0;
  if (cols == 1) view.col_stride = 1;
  if (rows == 1) view.row_stride = aligned_pitch(cols, view.dtype);
}

// Whether the batches continue the rows: row m of batch i is where row 0 of batch i + 1 is.
bool continues(const MatrixView& view, std::int64_t rows) {
  return rows == 1 || view.batch_stride == Int128{view.row_stride} * rows;
}

// Whether the arrays of the epilogue can be folded with it, each staying of its kind.
bool fusion_folds(const GemmProblem& p) {
  if (!p.fusion) return true;
  for (std::size_t i = 0; i < p.fusion->arrays.size(); ++i) {
    const ArrayKind kind = fused_kind(*p.fusion->epilogue, i, p.fusion_transposed);
    const bool has_rows = kind == ArrayKind::row || kind == ArrayKind::element;
    const MatrixView view = fused_array(p, i);
    if (has_rows ? !continues(view, p.m) : view.batch_stride != 0) return false;
  }
  return true;
}

void fold(MatrixView& view, std::int64_t rows) {
  if (rows == 1) view.row_stride = view.batch_stride;
  view.batch_stride = 0;
}

// Whether D's rows are not contiguous but its columns are.
bool is_column_major(const GemmProblem& p) {
  if (p.d_cols() == 1) return p.d_rows() > 1 && p.d.row_stride == 1;
  if (p.d_rows() == 1) return p.d.col_stride != 1;
  return p.d.col_stride != 1 && p.d.row_stride == 1;
}

}  // namespace

GemmProblem transposed(GemmProblem p) {
  std::swap(p.a, p.b);
  std::swap(p.m, p.n);
  for (MatrixView* view : {&p.a, &p.b, &p.c, &p.d}) std::swap(view->row_stride, view->col_stride);
  p.fusion_transposed = p.fusion && !p.fusion_transposed;
  return p;
}

GemmProblem fold_batch_into_m(GemmProblem p) {
  const bool reads_ab = p.k > 0;
  if (p.batch <= 1 || p.m > kMostSteps / p.batch) return p;
  if (reads_ab && (p.b.batch_stride != 0 || !continues(p.a, p.m))) return p;
  if (!continues(p.d, p.m) || (p.has_c() && !continues(p.c, p.m))) return p;
  if (!fusion_folds(p) || (p.gated() && p.fusion_transposed)) return p;
  for (MatrixView* view : {&p.a, &p.c, &p.d}) fold(*view, p.m);
  if (p.fusion) {
    auto folded = std::make_shared<Fusion>(*p.fusion);
    for (std::size_t i = 0; i < folded->arrays.size(); ++i) {
      MatrixView& view = folded->arrays[i];
      if (p.fusion_transposed) std::swap(view.row_stride, view.col_stride);
      fold(view, p.m);
      if (p.fusion_transposed) std::swap(view.row_stride, view.col_stride);
    }
    p.fusion = std::move(folded);
  }
  p.m *= p.batch;
  p.batch = 1;
  return p;
}

GemmProblem harmless_strides(GemmProblem p) {
  if (p.k == 0) pack(p.a, p.k), pack(p.b, p.n);
  free_operand(p.a, p.batch, p.m, p.k);
  free_operand(p.b, p.batch, p.k, p.n);
  free_result(p.d, p.batch, p.d_rows(), p.d_cols());
  if (p.has_c()) free_result(p.c, p.batch, p.m, p.n);
  return p;
}

GemmProblem canonical(const GemmProblem& problem) {
  GemmProblem p = problem;
  if (!p.has_c()) p.c = MatrixView{nullptr, p.d.dtype};
  if (p.k == 0) p.a.data = p.b.data = nullptr;
  if (p.batch == 0 || p.m == 0 || p.n == 0) {
    pack(p.a, p.k), pack(p.b, p.n), pack(p.c, p.n), pack(p.d, p.n);
    return p;
  }
  p = fold_batch_into_m(p);
  if (p.batch > 1) p = transposed(fold_batch_into_m(transposed(p)));
  return harmless_strides(is_column_major(p) ? transposed(p) : p);
}

}  // namespace fastgemm
