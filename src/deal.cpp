// Dealing out rows: when it can be done, and what the problem is then.
#include "deal.hpp"

namespace fastgemm {

MatrixView deal(MatrixView v) {
  v.batch_stride = v.row_stride;
  v.row_stride *= dealt_matrices;
  return v;
}

const char* refuse_deal(const GemmProblem& p) {
  if (p.batch != 1) return "deal_rows makes a batch of one product: there is one already";
  if (p.gated()) return "deal_rows is not written for gated epilogues";
  if (p.m < dealt_matrices) return "deal_rows needs eight rows";
  if (p.a.col_stride != 1 || p.a.row_stride <= 0)
    return "deal_rows needs rows that are contiguous along k, in ascending order";
  return nullptr;
}

GemmProblem dealt(const GemmProblem& p) {
  GemmProblem q = p;
  q.batch = dealt_matrices;
  q.m = ceil_div(p.m, dealt_matrices);
  q.a = deal(p.a);
  q.c = deal(p.c);
  q.d = deal(p.d);
  q.b.batch_stride = 0;
  q.rows_dealt = true;
  return q;
}

ProblemTraits dealt_traits(const GemmProblem& p) {
  ProblemTraits t = traits_of(p);
  t.dealt = true;
  t.a_copy_bytes = 16;   // as each map sees it
  t.tma_stores = false;  // a map for D would reach into rows of the next matrix
  return t;
}

std::uint32_t whole_matrices(std::int64_t rows_of_all) {
  const auto left = static_cast<std::uint32_t>(rows_of_all % dealt_matrices);
  return left == 0 ? dealt_matrices : left;
}

}  // namespace fastgemm
