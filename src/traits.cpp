// traits_of(): what the problem alone decides about a kernel.
#include <algorithm>

#include "fusion.hpp"
#include "planner.hpp"
#include "repack.hpp"
#include "tensor_map.hpp"

namespace fastgemm {
namespace {

// The widest access of 16, 8, 4 bytes that all addresses of the operand allow; 2 where its elements
// do not lie side by side.
int access_bytes(const MatrixView& v, std::int64_t contiguous_stride, std::int64_t other_stride) {
  const auto size = static_cast<std::int64_t>(size_of(v.dtype));
  if (contiguous_stride != 1) return static_cast<int>(size);
  const std::uint64_t bits = reinterpret_cast<std::uintptr_t>(v.data) |
                             static_cast<std::uint64_t>(other_stride * size) |
                             static_cast<std::uint64_t>(v.batch_stride * size);
  for (int bytes : {16, 8, 4})
    if (bytes > size && bits % bytes == 0) return bytes;
  return static_cast<int>(size);
}

std::int64_t magnitude(std::int64_t x) { return x < 0 ? -x : x; }

int copy_bytes(const MatrixView& v, Major major, std::int64_t outer_stride, std::int64_t k_stride) {
  return major == Major::k ? access_bytes(v, k_stride, outer_stride)
                           : access_bytes(v, outer_stride, k_stride);
}

// Elements of D or C that an access moves: 16 bytes of them (8 bytes of 8-bit ones: more would be
// much code) or, for the sake of few kernels, one.
int output_vector(const MatrixView& v) {
  const int bytes = access_bytes(v, v.col_stride, v.row_stride);
  return bytes == 16 ? std::min(16 / static_cast<int>(size_of(v.dtype)), 8) : 1;
}

}  // namespace

Major major_of(std::int64_t outer_stride, std::int64_t k_stride) {
  if (k_stride == 1) return Major::k;
  if (outer_stride == 1) return Major::mn;
  return magnitude(k_stride) <= magnitude(outer_stride) ? Major::k : Major::mn;
}

ProblemTraits traits_of(const GemmProblem& p) {
  ProblemTraits t;
  t.in = p.a.dtype;
  t.out = p.d.dtype;
  t.a_major = major_of(p.a.row_stride, p.a.col_stride);
  t.b_major = major_of(p.b.col_stride, p.b.row_stride);
  t.a_runs = runs_of(p.a, t.a_major, p.a.row_stride, p.a.col_stride);
  t.b_runs = runs_of(p.b, t.b_major, p.b.col_stride, p.b.row_stride);
  t.a_copy_bytes = copy_bytes(p.a, t.a_major, p.a.row_stride, p.a.col_stride);
  t.b_copy_bytes = copy_bytes(p.b, t.b_major, p.b.col_stride, p.b.row_stride);
  t.has_c = p.has_c();
  t.d_vector = output_vector(p.d);
  if (t.has_c) t.d_vector = std::min(t.d_vector, output_vector(p.c));
  t.tma = refuse_tma(p, t) == nullptr;
  t.tma_stores = refuse_tma_stores(p) == nullptr;
  t.epilogue_ids = fused_ids(p);
  return t;
}

std::uint64_t ProblemTraits::code() const {
  std::uint64_t code = 0;
  for (int field :
       {static_cast<int>(in), static_cast<int>(out), static_cast<int>(a_major),
        static_cast<int>(b_major), static_cast<int>(a_runs), static_cast<int>(b_runs), a_copy_bytes,
        b_copy_bytes, d_vector, has_c ? 1 : 0, tma ? 1 : 0, tma_stores ? 1 : 0})
    code = code << 5 | static_cast<std::uint64_t>(field);
  return code;
}

}  // namespace fastgemm
