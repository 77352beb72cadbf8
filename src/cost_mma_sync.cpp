// What a kernel of families sm70, sm75 and sm80 is predicted to take: many CTAs, whose warps copy
// and multiply.
#include <algorithm>
#include <cmath>

#include "cost.hpp"

namespace fastgemm {
namespace {

// Warp instructions per 16-byte chunk of a k-tile: one copy where 16 bytes go at once, else one per
// piece with its address and bounds; single elements pass through registers.
// Of shifted rows, each chunk has its own shift.
double copy_instructions(int copy_bytes, bool shift) {
  if (shift) return 14;
  return copy_bytes == 16 ? 6 : copy_bytes > 2 ? 16.0 / copy_bytes * 6 : 8 * 8;
}

// Cycles that an SM takes to gather 32 elements of a shifted tile (measured on an H200). Eight rows
// along k fill all banks where they have one shift, and meet in twos where they have not; rows
// along m or n are read four at a time, without conflicts.
double gather_cycles(Major major) { return major == Major::k ? 2.4 : 2.0; }

}  // namespace

Cost mma_sync_cost(const KernelConfig& c, const GemmProblem& p, const HardwareSpec& hw) {
  const double cycles_per_us = hw.clock_ghz * 1e3;
  const double in_size = 2, out_size = static_cast<double>(size_of(p.d.dtype));
  const int resident = std::max(1, ctas_per_sm(c, hw));
  const double k_tiles = static_cast<double>(k_tiles_of_cta(c, p));
  const double tiles = block_tiles(c, p);
  const double tiles_of_busiest_sm = std::ceil(tiles / hw.sms);
  const double rounds = std::ceil(tiles_of_busiest_sm / resident);

  // Of one k-tile of one block tile, in cycles of its SM.
  const double flops_per_clock = hw.arch.mma_flops_per_clock * hw.arch.mma_sync_share;
  const double tensor = 2.0 * c.block_m * c.block_n * c.block_k / flops_per_clock;
  const double tile_bytes = (c.block_m + c.block_n) * c.block_k * in_size;
  const double elements_of_row = c.threads() / 32.0 * c.block_k;  // in the fragments of all warps
  const double gathered_a = c.shift_a ? c.warp_m : 0, gathered_b = c.shift_b ? c.warp_n : 0;
  const double fragment_bytes = elements_of_row * (c.warp_m + c.warp_n - gathered_a - gathered_b) *
                                in_size * (c.family == Family::sm70 ? 2 : 1);
  const double shared =
      (tile_bytes + fragment_bytes * (c.swizzle ? 1 : 4)) / 128 +
      elements_of_row / 32 *
          (gathered_a * gather_cycles(c.a_major) + gathered_b * gather_cycles(c.b_major));
  const auto copies_of = [&](int block, int copy_bytes, bool shift) {
    return block * c.block_k / 8.0 / 32 / 4 * copy_instructions(copy_bytes, shift);
  };
  const double copies_a = copies_of(c.block_m, c.a_copy_bytes, c.shift_a);
  const double copies_b = copies_of(c.block_n, c.b_copy_bytes, c.shift_b);
  const double copies = copies_a + copies_b;
  // Nothing hides copies of 4 or 8 bytes, and they take longer than their issue (measured on an
  // H200).
  const auto in_pieces = [](int copy_bytes) { return copy_bytes == 4 || copy_bytes == 8; };
  const double unhidden = 2.6 * ((in_pieces(c.a_copy_bytes) ? copies_a : 0) +
                                 (in_pieces(c.b_copy_bytes) ? copies_b : 0));
  // A k-tile takes no less than its chain of fragment loads and products, nor than the ring hides
  // of a fetch.
  const double fetch_latency = c.family == Family::sm80 ? 900 : 1200;
  const double chain = 60.0 + c.block_k / 16 * 40.0;
  // Single elements come through registers: a thread waits for each of its chunks.
  const auto waits = [&](int block, int copy_bytes) -> double {
    return copy_bytes > 2 ? 0 : 700.0 * ceil_div(block * c.block_k / 8, c.threads());
  };
  // What a warp copies and gathers for itself, at about three cycles an instruction.
  const double own = gathered_a + gathered_b == 0
                         ? 0
                         : 3.2 * (copies * 4 * 32 / c.threads() +
                                  1.5 * (gathered_a + gathered_b) * c.block_k / 32);
  const double latency = std::max({chain, own, fetch_latency / std::max(c.num_stages - 1, 1)}) +
                         waits(c.block_m, c.a_copy_bytes) + waits(c.block_n, c.b_copy_bytes);

  // What the SM's L2 port carries. Rows of a k-tile that do not begin with a line of 128 bytes
  // touch two.
  const auto lines = [](Major major, std::int64_t pitch) {
    return major == Major::k && pitch % 64 != 0 ? 2.0 : 1.0;
  };
  const double fetched_bytes = (c.block_m * lines(c.a_major, p.a.row_stride) +
                                c.block_n * lines(c.b_major, p.b.col_stride)) *
                               c.block_k * in_size;

  Cost r;
  r.waves = tiles / (static_cast<double>(hw.sms) * resident);
  r.tensor_us = tiles_of_busiest_sm * k_tiles * tensor / cycles_per_us;
  r.shared_us = tiles_of_busiest_sm * k_tiles * shared / cycles_per_us;
  r.copy_us = tiles_of_busiest_sm * k_tiles * copies / cycles_per_us;
  r.latency_us = rounds * k_tiles * latency / cycles_per_us;
  r.dram_us = least_bytes(p) / (0.95 * hw.dram_gbps * 1e3);
  // L2 feeds an SM 66 bytes a cycle.
  r.l2_us = tiles_of_busiest_sm * k_tiles * fetched_bytes / 66 / cycles_per_us;

  // Launch, the first fetch, and the epilogues that nothing hides: all with one CTA an SM, else
  // half of them; a new CTA fills its ring anew. Single elements of D cost a warp about 18
  // instructions a row of 32.
  const double elements = c.d_vector == 1 ? c.block_m * c.block_n * 18.0 / 32 / 4 : 0;
  const double staging = c.block_m * c.block_n * (out_size + 8) / 128;
  const double epilogue = 600 + elements + staging;
  const double exposed = (rounds - 1) * (epilogue + 800) / cycles_per_us / (resident > 1 ? 2 : 1);
  r.overhead_us = 2 + (1500 + epilogue) / cycles_per_us;
  // The second kernel, and the partial sums through L2 in both directions.
  if (c.finishes_apart())
    r.reduce_us =
        2.0 + 4 * static_cast<double>(workspace_bytes(p, c)) / (hw.sms * 18.0 * cycles_per_us);
  // What hides behind the slowest still costs a part of it, and the main loop reaches four fifths
  // of these rates (measured on an H200).
  const double busy = std::max({r.tensor_us, r.shared_us, r.copy_us, r.latency_us}) + exposed +
                      tiles_of_busiest_sm * k_tiles * unhidden / cycles_per_us;
  r.total_us = r.reduce_us + r.overhead_us + 0.15 * (r.shared_us + r.l2_us) +
               1.25 * std::max({busy, r.l2_us, r.dram_us});
  return r;
}

}  // namespace fastgemm
