// How much there is to do: block tiles, k-tiles, clusters, the grid, the workspace of split K.
#include <algorithm>

#include "planner.hpp"

namespace fastgemm {

std::int64_t tiles_m(const KernelConfig& k, const GemmProblem& p) {
  return ceil_div(p.m, k.block_m);
}
std::int64_t tiles_n(const KernelConfig& k, const GemmProblem& p) {
  return ceil_div(p.n, k.block_n);
}

std::int64_t k_tiles_of_split(const KernelConfig& k, const GemmProblem& p) {
  return ceil_div(ceil_div(p.k, k.block_k), k.split_k);
}

std::int64_t k_tiles_of_last_split(const KernelConfig& k, const GemmProblem& p) {
  return ceil_div(p.k, k.block_k) - (k.split_k - 1) * k_tiles_of_split(k, p);
}

std::int64_t k_tiles_of_cta(const KernelConfig& k, const GemmProblem& p) {
  return ceil_div(k_tiles_of_split(k, p), k.cluster_k);
}

double block_tiles(const KernelConfig& c, const GemmProblem& p) {
  return static_cast<double>(ceil_div(tiles_m(c, p), c.cluster_m) * c.cluster_m) *
         static_cast<double>(ceil_div(tiles_n(c, p), c.cluster_n) * c.cluster_n) *
         static_cast<double>(p.batch) * c.split_k * c.cluster_k;
}

std::int64_t clusters_of(int ctas, const HardwareSpec& hw) {
  // A cluster's CTAs run on the SMs of one GPC, which are not a multiple of four: of 132 SMs, 30
  // clusters of four find room (measured on an H200), 14 of eight (from the same GPCs).
  const double room = ctas <= 2 ? 1.0 : ctas == 4 ? 30 * 4 / 132.0 : 14 * 8 / 132.0;
  return std::max(static_cast<int>(room * hw.sms) / ctas, 1);
}

std::int64_t clusters_at_once(const KernelConfig& c, const HardwareSpec& hw) {
  return clusters_of(c.cluster(), hw) * std::max(1, ctas_per_sm(c, hw));
}

std::int64_t grid_size(const KernelConfig& c, const GemmProblem& p, const HardwareSpec& hw) {
  const double tiles = std::min(block_tiles(c, p), 1e18);  // beyond any grid, within 64 bits
  if (!c.persistent) return static_cast<std::int64_t>(tiles);
  return std::min(static_cast<std::int64_t>(tiles), clusters_at_once(c, hw) * c.cluster());
}

std::int64_t workspace_pitch(const GemmProblem& p) { return (p.n + 7) / 8 * 8; }

std::size_t workspace_bytes(const GemmProblem& p, const KernelConfig& k) {
  return static_cast<std::size_t>(p.batch * k.split_k * p.m * workspace_pitch(p)) * sizeof(float);
}

std::int64_t reduce_teams(const GemmProblem& p) {
  return p.batch * (p.gated() ? p.m * p.n / 2 : p.m * ceil_div(p.n, 4));
}

int reduce_lane_bits(const GemmProblem& p, const KernelConfig& k) {
  constexpr std::int64_t enough = 1 << 16;
  int bits = 0;
  while (bits < 3 && k.split_k >> bits > 4 && reduce_teams(p) << (bits + 1) <= enough) ++bits;
  return bits;
}

}  // namespace fastgemm
