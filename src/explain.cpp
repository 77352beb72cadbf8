// Plans in words: str() and explain().
#include <algorithm>
#include <cstdio>

#include "planner.hpp"

namespace fastgemm {
namespace {

std::string format(const char* pattern, double a, double b = 0, double c = 0) {
  char text[160];
  std::snprintf(text, sizeof text, pattern, a, b, c);
  return text;
}

// Of the candidates that can run.
constexpr std::size_t shown = 30;

}  // namespace

std::string Plan::str() const {
  return describe(problem) + " on " + arch_name(hardware.arch.cc) + ": " + kernel.str() + " (" +
         strategy + "), " + std::to_string(ctas) + " CTAs of " + std::to_string(threads) +
         " threads, " + std::to_string(ctas_per_sm) + " per SM, " + std::to_string(shared_bytes) +
         " bytes shared, " + format("%.2f waves, %.1f us predicted", cost.waves, cost.total_us);
}

std::string Plan::explain() const {
  const auto major = [](Major m, const char* outer) {
    return m == Major::k ? std::string("k") : outer;
  };
  const auto source = [](bool copied, bool shifted, int bytes) {
    return copied    ? std::string("copied into aligned rows first")
           : shifted ? "read in the aligned 16 bytes that hold its rows"
                     : "read " + std::to_string(bytes) + " bytes at a time";
  };
  std::string s = str() + "\n";
  s += "  hardware   " + hardware.name + ": " + std::to_string(hardware.sms) + " SMs, " +
       format("%.2f GHz, %.0f GB/s, L2 %.0f MB\n", hardware.clock_ghz, hardware.dram_gbps,
              hardware.l2_bytes / 1e6);
  const ProblemTraits asked =
      traits_of(problem);  // a kernel with swapped operands has them the other way round
  s += "  operands   A contiguous along " + major(asked.a_major, "m") + ", " +
       source(kernel.repack_a, kernel.shift_a, asked.a_copy_bytes) + "; B along " +
       major(asked.b_major, "n") + ", " +
       source(kernel.repack_b, kernel.shift_b, asked.b_copy_bytes) + "; D " +
       (kernel.tma_stores ? std::string("by the TMA")
                          : "in vectors of " + std::to_string(kernel.d_vector)) +
       "\n";
  s += "  predicted  " +
       format("Tensor Cores %.1f us, shared memory %.1f, latency %.1f, ", cost.tensor_us,
              cost.shared_us, cost.latency_us) +
       format("L2 %.1f, DRAM %.1f, narrow copies %.1f, ", cost.l2_us, cost.dram_us, cost.copy_us) +
       format("repacking %.1f, adding up splits %.1f, ", cost.repack_us, cost.reduce_us) +
       format("overhead %.1f, power limit %.1f\n", cost.overhead_us, cost.power_us);
  s += "  considered\n";
  const auto first_refused = std::find_if(considered.begin(), considered.end(),
                                          [](const Candidate& c) { return !c.refused.empty(); });
  const auto able = static_cast<std::size_t>(first_refused - considered.begin());
  for (std::size_t i = 0; i < std::min(able, shown); ++i) {
    const Candidate& c = considered[i];
    s +=
        "    " + format("%8.1f us  ", c.cost.total_us) + c.kernel.str() + " (" + c.strategy + ")\n";
  }
  if (able > shown)
    s += "     and " + std::to_string(able - shown) + " slower ones, up to " +
         format("%.1f us: all are in `considered`\n", considered[able - 1].cost.total_us);
  for (auto c = first_refused; c != considered.end(); ++c)
    s += "     refused    " + c->kernel.str() + " (" + c->strategy + "): " + c->refused + "\n";
  return s;
}

}  // namespace fastgemm
