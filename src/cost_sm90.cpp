// What a kernel of family sm90 is predicted to take. The constants fit measurements of an H200,
// bench/results/h200_candidates.json.
#include <algorithm>
#include <cmath>

#include "cost.hpp"

namespace fastgemm {
namespace {

// What overlaps is no longer than its longest part where that is far longer than the others, and
// longer where several are as long.
double overlapped(std::initializer_list<double> causes) {
  double sum = 0;
  for (double us : causes) sum += us * us * us * us;
  return std::sqrt(std::sqrt(sum));
}

// Cycles from the last product of a block tile to the end of its stores. By the TMA, a
// warpgroup's panels one after the other. A cluster that shares K exchanges its sums through shared
// memory first; partial sums go to the workspace, which reduce_us counts.
double epilogue_cycles(const KernelConfig& c, double rows, double out_size) {
  const double exchange = c.cluster_k > 1 ? 0.05 * rows * c.block_n * 4 : 0;
  if (c.tma_stores)
    return exchange + 231.0 * ceil_div(c.warp_m, 64) * finished_cols(c) / store_panel_cols(c);
  if (c.finishes_apart()) return exchange;
  const double elements = static_cast<double>(c.block_m) * finished_cols(c);
  // Single elements of D cost a warp about 18 instructions a row of 32.
  return exchange + 1150 + elements * (out_size + 8) / 128 +
         (c.d_vector == 1 ? elements * 18 / 32 / 4 : 0);
}

// How many CTAs fetch each byte of the longer operand (the weights) for themselves.
double readers_of_longer(const KernelConfig& c, const GemmProblem& p) {
  const int a_share = c.multicast ? c.cluster_n : 1, b_share = c.multicast ? c.cluster_m : 1;
  const std::int64_t readers =
      p.n >= p.m ? ceil_div(tiles_m(c, p), b_share) : ceil_div(tiles_n(c, p), a_share);
  return static_cast<double>(readers);
}

// Cycles that a k-tile takes on its way through both rings where rows are shifted: by one warpgroup
// that fetches its 16-byte chunks and one or two, what the consumers of a k-tile leave, that
// straighten them. Rows whose chunks do not divide the fetching warpgroup's threads into eights of
// rows take more instructions.
double shifting_cycles(const KernelConfig& c) {
  if (!c.shifts()) return 0;
  const int consumers = c.ping_pong ? 1 : c.consumers();
  const auto cycles_of = [&](bool shifted, Major major, int block) {
    const int full = (major == Major::k ? c.block_k : block) / 8;
    const bool steady = warpgroup % full == 0 && warpgroup / full % 8 == 0;
    const double chunks = block * c.block_k / 8.0;
    return shifted ? 72 + chunks * ((steady ? 0.557 : 1.153) + 0.165 / (3 - consumers)) : 0;
  };
  return 197 + cycles_of(c.shifts_rows_of_a(), c.a_major, c.block_m) +
         cycles_of(c.shifts_rows_of_b(), c.b_major, c.block_n) + 906.0 / (c.num_stages - 1);
}

}  // namespace

Cost sm90_cost(const KernelConfig& c, const GemmProblem& p, const HardwareSpec& hw) {
  const double cycles_per_us = hw.clock_ghz * 1e3;
  const double in_size = 2, out_size = static_cast<double>(size_of(p.d.dtype));
  const int resident = std::max(1, ctas_per_sm(c, hw));
  const double k_tiles = static_cast<double>(k_tiles_of_cta(c, p));
  const double tiles = block_tiles(c, p);
  const double at_once = static_cast<double>(clusters_of(c.cluster(), hw) * c.cluster());
  const double tiles_of_busiest_sm = std::ceil(tiles / at_once);
  const double rounds = std::ceil(tiles_of_busiest_sm / resident);

  // Of one k-tile of one block tile, in cycles of its SM. WGMMA multiplies 64 rows, whether the
  // tile has them or not, and reads 0.57 of its operands again from shared memory while it does.
  const double rows = c.block_m / c.warp_m * ceil_div(c.warp_m, 64) * 64;
  const double tensor = 2.0 * rows * c.block_n * c.block_k / hw.arch.mma_flops_per_clock;
  const double tile_bytes = (c.block_m + c.block_n) * c.block_k * in_size;
  const double fragment_bytes = 0.57 * rows / 64.0 * (64 + c.block_n) * c.block_k * in_size;
  // Not measured: the TMA fills a row of a swizzle atom in one pass, however narrow; WGMMA reads
  // all atoms without conflicts.
  const double passes = 128.0 / c.swizzle_bytes;
  const double shared = (tile_bytes * passes + fragment_bytes) / 128;
  // Barriers and the start of the products, or, where the ring does not hold all k-tiles anyway,
  // what it leaves of a fetch's latency. shifting_cycles() has its own.
  const double chain = 109.0 + c.block_k / 16 * 33.0;
  const double fetch_latency = 2025.0 / std::max(c.num_stages - 1, 1);
  // Requests of several SMs for a line reach L2 as one where they come at about the same time.
  // Those of CTAs that share K hardly ever do: twice as many reads of L2 were counted. Those of
  // CTAs that shift rows never: each waits for its own chunks. With multicast a shared operand
  // leaves L2 once for the cluster, which saves half of what its way to two SMs takes; but not of
  // the shorter operand, whose many readers have their requests merged anyway, while the pair waits
  // for its slower CTA.
  const double l2_bytes_per_cycle = c.shifts() ? 35.7 : c.cluster_k > 1 ? 63 : 253;
  const bool shares_longer = c.cluster_n > 1 ? p.m >= p.n : p.n >= p.m;
  const bool pair = c.multicast && c.cluster_m * c.cluster_n > 1;
  const auto shared_by = [&](int ctas) { return pair && ctas > 1 && shares_longer ? 0.75 : 1.0; };
  const double latency = (c.shifts() || tiles_of_busiest_sm * k_tiles <= c.num_stages
                              ? chain
                              : std::max(chain, fetch_latency)) *
                         (pair && !shares_longer ? 1.15 : 1.0);
  // Rows of a k-tile that do not begin with a line of 128 bytes touch two, and L2 then takes seven
  // times as long. Rows that do not exist are not fetched.
  const auto fetched_rows = [](int block, std::int64_t extent, Major major, std::int64_t pitch,
                               bool shifted) {
    return static_cast<double>(std::min<std::int64_t>(block, extent)) *
           (major == Major::k && pitch % 64 != 0 && !shifted ? 7.0 : 1.0);
  };
  const double fetched_bytes =
      (fetched_rows(c.block_m, p.m, c.a_major, p.a.row_stride, c.shifts_rows_of_a()) *
           shared_by(c.cluster_n) +
       fetched_rows(c.block_n, p.n, c.b_major, p.b.col_stride, c.shifts_rows_of_b()) *
           shared_by(c.cluster_m)) *
      c.block_k * in_size;

  Cost r;
  const double k_tiles_of_busiest_sm = tiles_of_busiest_sm * k_tiles;
  r.waves = tiles / (static_cast<double>(hw.sms) * resident);
  r.tensor_us = k_tiles_of_busiest_sm * tensor / cycles_per_us;
  r.shared_us = k_tiles_of_busiest_sm * shared / cycles_per_us;
  r.latency_us = rounds * k_tiles * latency / cycles_per_us;
  r.copy_us = k_tiles_of_busiest_sm * shifting_cycles(c) / cycles_per_us;
  r.l2_us = k_tiles_of_busiest_sm * fetched_bytes / l2_bytes_per_cycle / cycles_per_us;
  // 0.874 of the data sheet's rate; SMs without a tile in the last wave leave a part of theirs
  // unused, and CTAs that fetch the same bytes get in each other's way.
  const double idle = std::max(tiles_of_busiest_sm * hw.sms / tiles, 1.0);
  const double again = 0.106 * (std::min(readers_of_longer(c, p), 4.0) - 1);
  r.dram_us = (least_bytes(p) + again * input_bytes(p)) / (0.874 * hw.dram_gbps * 1e3) *
              std::pow(idle, 0.084);

  // Between two tiles of a CTA the Tensor Cores wait for the stores, which all SMs make at the same
  // time, or with ping-pong for what outlasts the other warpgroup's main loop.
  const double epilogue = epilogue_cycles(c, rows, out_size);
  const double stored_bytes =  // gated, not measured
      c.finishes_apart() || c.gated() ? 0 : c.block_m * c.block_n * out_size;
  const double stores = std::max(epilogue, stored_bytes / 16);
  const double hiding = k_tiles * std::max(tensor, latency);
  const double between = c.ping_pong ? std::max(stores - hiding, 0.0) : stores;
  const double exposed = (rounds - 1) * between / cycles_per_us / (resident > 1 ? 2 : 1);
  // Launch, the first fetch and the last stores. CTAs that share K store their columns in shares:
  // in short rows, but of D by swapped operands. The first rows that are shifted pass two rings.
  const bool short_rows = c.cluster_k > 1 && (!c.swap_ab || c.finishes_apart());
  r.overhead_us = (c.dependent_launch ? 2.33 : 3.33) +
                  (c.cluster_m * c.cluster_n > 1 ? 0.05 : 0.0) + (c.cluster_k > 2 ? 0.32 : 0.0) +
                  (short_rows ? 1.0 : 0.0) + (c.shifts() ? 0.8 : 0.0) + epilogue / cycles_per_us;
  // The second kernel: a thread's loads four at a time, and all partial sums through L2: where the
  // operands are swapped against the grain of D, and many get in each other's way. Its CTAs find no
  // room beside those with two consumers, which take all registers.
  if (c.finishes_apart()) {
    const double loads = static_cast<double>(ceil_div(c.split_k, 4 << reduce_lane_bits(p, c)));
    const double sums = static_cast<double>(workspace_bytes(p, c)) / (hw.sms * 18 * cycles_per_us);
    r.reduce_us = 0.5 + 0.5 * loads + (c.swap_ab ? (4.4 + 0.9 * sums) * sums : 2.4 * sums) +
                  (c.consumers() > 1 ? 1.6 : 0.0);
  }
  // A prefetching kernel has its first k-tiles in L2 when it may begin. Stores that ping-pong
  // spreads out, rather than all SMs storing at once, help long products at the power limit.
  const auto causes = {r.tensor_us, r.shared_us, r.latency_us, r.copy_us, r.l2_us, r.dram_us};
  const double longest = std::max(causes);
  const double long_lived =
      std::clamp((r.tensor_us - 30) / 120, 0.0, 1.0) * std::pow(r.tensor_us / longest, 4);
  const double gain = (c.ping_pong ? 1 - 0.08 * long_lived : 1) * (c.prefetch ? 0.964 : 1);
  const double main_loop = std::max(overlapped(causes) * gain, longest);
  const double at_full_clock = main_loop + exposed + r.overhead_us + r.reduce_us;
  // Products that keep the Tensor Cores busy run into the card's power limit, and its clock gives
  // way: a kernel that wastes less time between products is hardly faster then, one that multiplies
  // less is (measured on an H200).
  const double busy = r.tensor_us / at_full_clock;
  r.total_us = at_full_clock * std::pow(std::max(busy / 0.62, 1.0), 0.69);
  r.power_us = r.total_us - at_full_clock;
  return r;
}

}  // namespace fastgemm
