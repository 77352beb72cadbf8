// What a kernel of family gemv is predicted to take. What fits measurements here fits those in
// bench/results/h200_candidates.json.
#include <algorithm>
#include <cmath>

#include "cost.hpp"

namespace fastgemm {

Cost gemv_cost(const KernelConfig& c, const GemmProblem& p, const HardwareSpec& hw) {
  const double cycles_per_us = hw.clock_ghz * 1e3;
  const double ctas = block_tiles(c, p);
  const int resident = std::max(1, ctas_per_sm(c, hw));
  const double ctas_of_busiest_sm = std::ceil(ctas / hw.sms);
  const double k = static_cast<double>(k_tiles_of_split(c, p)) * c.block_k;
  const bool tensor = gemv_on_tensor_cores(c);
  const int cols = tensor ? 2 : c.b_major == Major::k ? c.warp_n : 8;  // of a lane

  Cost r;
  r.waves = ctas / (hw.sms * static_cast<double>(resident));
  // With few CTAs an SM, some SMs have read their share before others; all of a full wave begin
  // at once, and only the SMs that have more of them are late. Where n is contiguous, a
  // warp takes rows of WARP_N columns, and short rows cost; and the last round of CTAs takes half
  // as long as a full one, however few they are.
  double uneven = 1 + std::max(0.9 * hw.sms / ctas - 0.1, 0.0) / c.block_m;
  if (ctas_of_busiest_sm == resident) uneven = std::min(uneven, ctas_of_busiest_sm * hw.sms / ctas);
  if (c.b_major == Major::mn) {
    const double full = std::floor(r.waves), last = r.waves - full;
    const double rounds = full == 0 ? r.waves : full + (last > 0 ? std::max(last, 0.5) : 0);
    uneven = rounds / r.waves * (1 + 3.0 / c.warp_n) * std::sqrt(std::max(hw.sms / ctas, 1.0));
  }
  r.dram_us = least_bytes(p) / (0.97 * hw.dram_gbps * 1e3) * uneven;

  // B's bytes through the port of the busiest SM: what its lanes keep under way while memory is
  // busy, 1500 cycles or, where they wait for all of a step, 3200; 64 a cycle at most. A comes from
  // L1 but for the first CTA.
  const double under_way = std::min(ctas_of_busiest_sm, static_cast<double>(resident)) *
                           c.threads() * cols * c.num_stages * 16;
  const double b_bytes = ctas_of_busiest_sm * c.block_n * k * 2;
  const double a_bytes = c.block_m * k * 2;
  const double latency = c.b_major == Major::k ? 1500 : 3200;
  r.l2_us = (b_bytes + a_bytes) / std::min(64.0, under_way / latency) / cycles_per_us;
  // What a CTA takes by itself: its start and end, and a latency for each step.
  const double cta_us = (700 + 1100 * static_cast<double>(k_tiles_of_split(c, p))) / cycles_per_us;
  const double rounds = std::ceil(ctas_of_busiest_sm / resident);

  // Instructions of a chunk of eight: reading it, unpacking it and its share of A, the products.
  // Elements that do not lie side by side are read one by one, with a line of memory each; those of
  // A, at that, for every column anew (measured on an H200).
  const bool a_wide = c.a_copy_bytes == 16 && c.a_major == Major::k;
  const bool a_scattered = c.block_m > 1 && c.a_major == Major::mn;
  const bool side_by_side = c.b_major == Major::k ? p.b.row_stride == 1 : p.b.col_stride == 1;
  const double unaligned = c.b_copy_bytes == 16 ? 0 : !side_by_side ? 4000 : tensor ? 40 : 97;
  // Where A is cut out of aligned reads as B is, few rows take as long as many on Tensor Cores, and
  // those that do not exist are still counted off one by one (measured on an H200).
  const bool a_cut = !a_wide && !a_scattered;
  const double of_rows = a_cut && unaligned > 0 ? 200 + (p.m % c.block_m == 0 ? 0 : 100)
                                                : c.block_m * (a_wide        ? 1.0
                                                               : a_scattered ? 40.0
                                                                             : 3.5);
  const double row = (8 + 10.0 / cols) * (a_scattered ? 9 : 1) + (a_cut ? 206.0 / cols : 0);
  // The fewer steps K has, the longer unaligned rows take (measured on an H200; the cause was not
  // looked for).
  const double steps = static_cast<double>(ceil_div(p.k, c.block_k));
  const double instructions =
      10 + unaligned * (1 + 1.2 / steps) + (tensor ? of_rows : 8 + c.block_m * row);
  r.tensor_us = b_bytes / 16 * instructions / 128 / cycles_per_us;
  // Several rows are added up apart, between lanes and warps.
  r.overhead_us = (c.dependent_launch ? 1.0 : 2.0) + (tensor          ? 0.9 + 0.08 * r.dram_us
                                                      : c.block_m > 1 ? 1.6
                                                                      : 0.0);
  if (c.finishes_apart())
    r.reduce_us =
        4.5 + 2 * static_cast<double>(workspace_bytes(p, c)) / (hw.sms * 20.0 * cycles_per_us);
  // Every CTA starts and ends, and reads A anew for its few columns (measured on an H200).
  const double turnover_us = ctas / hw.sms * 0.03 * (1 + c.block_m) * c.threads() / 512 *
                             (c.b_major == Major::k ? 4.0 / cols : 1.0);
  r.total_us = r.reduce_us + r.overhead_us + turnover_us + 0.28 * r.tensor_us +
               std::max({r.dram_us, r.l2_us, 1.25 * r.tensor_us, rounds * cta_us});
  return r;
}

}  // namespace fastgemm
