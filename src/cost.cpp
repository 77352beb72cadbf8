// cost(): predicted microseconds of a kernel, from the hardware row, in the terms of explain().
// What fits measurements here fits those in bench/results/h200_candidates.json.
#include <algorithm>
#include <cmath>

#include "planner.hpp"

namespace fastgemm {
namespace {

// Warp instructions per 16-byte chunk of a k-tile: one copy where 16 bytes go at once, else one per
// piece with its address and bounds; single elements pass through registers.
double copy_instructions(int copy_bytes) {
  return copy_bytes == 16 ? 6 : copy_bytes > 2 ? 16.0 / copy_bytes * 6 : 8 * 8;
}

// Every element of every operand once.
double least_bytes(const GemmProblem& p) {
  const double inputs = (static_cast<double>(p.m) * p.k + static_cast<double>(p.k) * p.n) * 2;
  const double outputs = static_cast<double>(p.d_rows()) * p.d_cols() * size_of(p.d.dtype);
  return (inputs + outputs * (p.has_c() ? 2 : 1)) * static_cast<double>(p.batch);
}

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
  // With few CTAs an SM, some SMs have read their share before others. Where n is contiguous, a
  // warp takes rows of WARP_N columns, and short rows cost; and the last round of CTAs takes half
  // as long as a full one, however few they are.
  double uneven = 1 + std::max(0.9 * hw.sms / ctas - 0.1, 0.0) / c.block_m;
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
  const double unaligned = c.b_copy_bytes == 16 ? 0 : side_by_side ? 40 : 4000;
  const double instructions = 10 + unaligned +
                              (tensor ? c.block_m * (a_wide        ? 1.0
                                                     : a_scattered ? 40.0
                                                                   : 3.5)
                                      : 8 + c.block_m * (8 + 10.0 / cols) * (a_scattered ? 9 : 1));
  r.tensor_us = b_bytes / 16 * instructions / 128 / cycles_per_us;
  r.overhead_us = (c.dependent_launch ? 1.0 : 2.0) + (tensor ? 0.9 + 0.08 * r.dram_us : 0.0);
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

}  // namespace

Cost cost(const KernelConfig& c, const GemmProblem& p, const HardwareSpec& hw) {
  if (c.family == Family::gemv) return gemv_cost(c, p, hw);
  const bool sm90 = c.family == Family::sm90;
  const double cycles_per_us = hw.clock_ghz * 1e3;
  const double in_size = 2, out_size = static_cast<double>(size_of(p.d.dtype));
  const int resident = std::max(1, ctas_per_sm(c, hw));
  const double k_tiles = static_cast<double>(k_tiles_of_cta(c, p));

  const double tiles = block_tiles(c, p);
  const double at_once = static_cast<double>(clusters_of(c.cluster(), hw) * c.cluster());
  const double tiles_of_busiest_sm = std::ceil(tiles / at_once);
  const double rounds = std::ceil(tiles_of_busiest_sm / resident);

  // Of one k-tile of one block tile, in cycles of its SM.
  const double flops_per_clock =
      hw.arch.mma_flops_per_clock * (sm90 ? 1.0 : hw.arch.mma_sync_share);
  // WGMMA multiplies 64 rows, whether the tile has them or not.
  const double rows = sm90 ? c.block_m / c.warp_m * ceil_div(c.warp_m, 64) * 64 : c.block_m;
  // One warpgroup alone leaves a part of the Tensor Cores' time unused (measured on an H200).
  const double alone = sm90 && c.consumers() == 1 ? 1.22 : 1;
  const double tensor = alone * 2.0 * rows * c.block_n * c.block_k / flops_per_clock;
  const double tile_bytes = (c.block_m + c.block_n) * c.block_k * in_size;
  const double fragment_bytes =
      sm90 ? 0.45 * rows / 64.0 * (64 + c.block_n) * c.block_k * in_size  // 0.45: fits measurements
           : c.threads() / 32.0 * (c.warp_m + c.warp_n) * c.block_k * in_size *
                 (c.family == Family::sm70 ? 2 : 1);
  // Not measured: the TMA fills a row of a swizzle atom in one pass, however narrow; WGMMA reads
  // all atoms without conflicts.
  const double passes = sm90 ? 128.0 / c.swizzle_bytes : 1;
  const double conflicts = sm90 || c.swizzle ? 1 : 4;
  const double shared = (tile_bytes * passes + fragment_bytes * conflicts) / 128;
  const double copies = sm90 ? 0
                             : (c.block_m * copy_instructions(c.a_copy_bytes) +
                                c.block_n * copy_instructions(c.b_copy_bytes)) *
                                   c.block_k / 8 / 32 / 4;
  // A k-tile takes no less than its chain of fragment loads and products, nor than the ring hides
  // of a fetch.
  const double fetch_latency = sm90 ? 1900 : c.family == Family::sm80 ? 900 : 1200;
  const double chain = sm90 ? 110.0 + c.block_k / 16 * 18.0 : 60.0 + c.block_k / 16 * 40.0;
  // Single elements come through registers: a thread waits for each of its chunks.
  const auto waits = [&](int block, int copy_bytes) -> double {
    return sm90 || copy_bytes > 2 ? 0 : 700.0 * ceil_div(block * c.block_k / 8, c.threads());
  };
  const double latency = std::max(chain, fetch_latency / std::max(c.num_stages - 1, 1)) +
                         waits(c.block_m, c.a_copy_bytes) + waits(c.block_n, c.b_copy_bytes);

  // What the SM's L2 port carries; with multicast a shared operand comes once for the cluster. Rows
  // of a k-tile that do not begin with a line of 128 bytes touch two.
  const auto lines = [](Major major, std::int64_t pitch) {
    return major == Major::k && pitch % 64 != 0 ? 2.0 : 1.0;
  };
  const double a_share = c.multicast ? c.cluster_n : 1, b_share = c.multicast ? c.cluster_m : 1;
  const double fetched_bytes = (c.block_m / a_share * lines(c.a_major, p.a.row_stride) +
                                c.block_n / b_share * lines(c.b_major, p.b.col_stride)) *
                               c.block_k * in_size;

  Cost r;
  r.waves = tiles / (static_cast<double>(hw.sms) * resident);
  r.tensor_us = tiles_of_busiest_sm * k_tiles * tensor / cycles_per_us;
  r.shared_us = tiles_of_busiest_sm * k_tiles * shared / cycles_per_us;
  r.copy_us = tiles_of_busiest_sm * k_tiles * copies / cycles_per_us;
  const double latency_us = rounds * k_tiles * latency / cycles_per_us;

  // Persistent CTAs draw their share of the data sheet's rate each: SMs without a tile leave theirs
  // unused. Others reach 0.95 of it.
  const double idle = sm90 ? tiles_of_busiest_sm * hw.sms / tiles : 1 / 0.95;
  r.dram_us = least_bytes(p) / (hw.dram_gbps * 1e3) * idle;

  // L2 feeds an SM 66 bytes a cycle.
  r.l2_us = tiles_of_busiest_sm * k_tiles * fetched_bytes / 66 / cycles_per_us;

  // Launch, the first fetch, and the epilogues that nothing hides: all with one CTA an SM, else
  // half of them. By the TMA, a warpgroup's panels of 64 rows; without multicast, loads for the
  // next tile get in their way. Sums that a cluster exchanges go through its CTAs' shared memory.
  const double tile_out = c.block_m * finished_cols(c) * out_size;
  const double panel_cols = store_panel_cols(c);
  const double panels = ceil_div(c.warp_m, 64) * finished_cols(c) / panel_cols;
  const double exchange = c.cluster_k > 1 ? 1.1 * rows * c.block_n * 4 / 16 : 0;
  // Single elements of D cost a warp about 18 instructions a row of 32.
  const double elements = c.d_vector == 1 ? c.block_m * finished_cols(c) * 18.0 / 32 / 4 : 0;
  const double staging = (tile_out + c.block_m * finished_cols(c) * 8.0) / 128;
  const double epilogue = exchange + (c.tma_stores ? (240 + 3.5 * panel_cols) * panels
                                                   : (sm90 ? 1150 : 600) + elements + staging);
  // sm80 starts a new CTA and fills its ring anew.
  const double next_round = sm90 ? epilogue * (c.multicast ? 1 : 1.4) : epilogue + 800;
  // Ping-pong, only what outlasts the other warpgroup's main loop, and the handover.
  const double hiding = k_tiles * std::max({tensor, shared, latency});
  const double between = c.ping_pong ? 150 + std::max(epilogue - hiding, 0.0) : next_round;
  const double exposed = (rounds - 1) * between / cycles_per_us / (resident > 1 ? 2 : 1);
  r.overhead_us = (c.dependent_launch ? c.prefetch ? 0.8 : 1.0 : 2.0) +
                  (c.cluster_m * c.cluster_n > 1 ? c.ping_pong ? 0.3 : 0.7 : 0.0) +
                  (c.cluster_k > 2 ? 1.0 : 0.0) + ((sm90 ? 250 : 1500) + epilogue) / cycles_per_us;
  // The second kernel, and the partial sums through L2 in both directions: against the grain of D
  // where the operands are swapped.
  if (c.finishes_apart())
    r.reduce_us = 2.0 + (c.swap_ab ? 8 : 4) * static_cast<double>(workspace_bytes(p, c)) /
                            (hw.sms * 18.0 * cycles_per_us);
  // What hides behind the slowest still costs: a part of the second slowest, a little of the rest.
  // mma.sync's main loop reaches four fifths of these rates (both measured on an H200).
  const double hidden = c.ping_pong ? 0.02 * r.shared_us + 0.045 * r.l2_us
                        : sm90      ? 0.08 * r.shared_us + 0.1 * r.l2_us
                                    : 0.15 * (r.shared_us + r.l2_us);
  const double busy = std::max({r.tensor_us, r.shared_us, r.copy_us, latency_us}) + exposed;
  double causes[] = {busy, r.l2_us, r.dram_us};
  std::sort(causes, causes + 3);
  // Ping-pong, a constant share: one warpgroup multiplies while the other waits, but for DRAM both.
  const double main_loop = c.ping_pong ? std::max(1.18 * causes[2], causes[2] + 0.3 * r.dram_us)
                           : sm90      ? causes[2] + 0.27 * causes[1]
                                       : 1.25 * causes[2];
  r.total_us = r.reduce_us + r.overhead_us + hidden + main_loop;
  return r;
}

}  // namespace fastgemm
