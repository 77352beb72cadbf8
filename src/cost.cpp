// cost(): predicted microseconds of a kernel, from the hardware row, in the terms of explain().
#include "cost.hpp"

namespace fastgemm {

double input_bytes(const GemmProblem& p) {
  const auto matrices = [&](const MatrixView& v) {  // that differ
    return v.batch_stride == 0 ? 1.0 : static_cast<double>(p.batch);
  };
  return 2.0 * static_cast<double>(p.k) *
         (matrices(p.a) * static_cast<double>(p.m) + matrices(p.b) * static_cast<double>(p.n));
}

double least_bytes(const GemmProblem& p) {
  const double outputs = static_cast<double>(p.d_rows()) * p.d_cols() * size_of(p.d.dtype);
  return input_bytes(p) + outputs * (p.has_c() ? 2 : 1) * static_cast<double>(p.batch);
}

Cost cost(const KernelConfig& c, const GemmProblem& p, const HardwareSpec& hw) {
  return c.family == Family::gemv   ? gemv_cost(c, p, hw)
         : c.family == Family::sm90 ? sm90_cost(c, p, hw)
                                    : mma_sync_cost(c, p, hw);
}

}  // namespace fastgemm
