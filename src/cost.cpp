// cost(): predicted microseconds of a kernel, from the hardware row, in the terms of explain().
#include "cost.hpp"

namespace fastgemm {

double input_bytes(const GemmProblem& p) {
  const double of_one = (static_cast<double>(p.m) * p.k + static_cast<double>(p.k) * p.n) * 2;
  return of_one * static_cast<double>(p.batch);
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
