// cost(): predicted microseconds of a kernel, from the hardware row, in the terms of explain().
#include "cost.hpp"

namespace fastgemm {

double input_bytes(const GemmProblem& p) {
  const auto rows = [&](const MatrixView& v, std::int64_t outer) {
    return static_cast<double>(matrices_of(v, p.batch)) * static_cast<double>(outer);
  };
  return 2.0 * static_cast<double>(p.k) * (rows(p.a, p.m) + rows(p.b, p.n));
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
