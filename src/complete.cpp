// complete(): all constants of a kernel, from a tile, the problem, the hardware and the wishes.
#include <algorithm>
#include <cmath>

#include "fusion.hpp"
#include "planner.hpp"

namespace fastgemm {
namespace {

constexpr int WHOLE_COLUMNS = 1024;  // as many rows of tiles as a raster group may have

// The warp tile with the least shared-memory traffic among those that keep the accumulators in
// registers and give the four schedulers of an SM a warp each. To gather elements takes four times
// as long as ldmatrix does.
void choose_warp_tile(KernelConfig& k, const GemmProblem& p, const HardwareSpec& hw,
                      const GemmConfig& wish) {
  if (k.family == Family::sm90) {
    k.warp_m = wish.warp_m.value_or(k.block_m <= 64 || k.ping_pong ? k.block_m
                                    : k.block_m <= 192             ? 64
                                                                   : 128);
    k.warp_n = wish.warp_n.value_or(k.block_n);
    return;
  }
  // Both operands transposed on the way from shared memory: their addresses take registers too, and
  // so do elements that are gathered.
  const bool transposes_both = k.a_major == Major::mn && k.b_major == Major::mn;
  const int most_accumulators =
      k.family == Family::sm80 && !transposes_both && !k.shifts() ? 128 : 64;
  // A warp waits for the elements that it gathers, and others are needed meanwhile.
  const std::int64_t ctas = ceil_div(p.m, std::max(k.block_m, 1)) *
                            ceil_div(p.n, std::max(k.block_n, 1)) * p.batch * k.split_k;
  const int fewest_warps = k.shifts() && ctas <= hw.sms ? 8 : 4;
  double best = 1e30;
  for (int m = 16; m <= std::min(k.block_m, 128); m += 16)
    for (int n = 16; n <= std::min(k.block_n, 128); n += 16) {
      if (k.block_m % m || k.block_n % n || wish.warp_m.value_or(m) != m ||
          wish.warp_n.value_or(n) != n)
        continue;
      const int warps = k.block_m / m * (k.block_n / n);
      const int accumulators = m * n / 32;
      double traffic = (k.shift_b ? 4.0 : 1.0) / m + (k.shift_a ? 4.0 : 1.0) / n;
      if (accumulators > most_accumulators) traffic += 10;
      if (warps < fewest_warps) traffic += fewest_warps - warps;
      if (warps > 8) traffic += warps - 8;
      if (traffic < best) {
        best = traffic;
        k.warp_m = m;
        k.warp_n = n;
      }
    }
  k.warp_m = wish.warp_m.value_or(k.warp_m);
  k.warp_n = wish.warp_n.value_or(k.warp_n);
}

// As many stages as K has use for and shared memory has room for, with eight warps on an SM where
// that many CTAs exist, and sixteen of those that gather.
int choose_stages(KernelConfig k, const GemmProblem& p, const HardwareSpec& hw) {
  if (k.family < Family::sm80) return 2;
  const std::int64_t ctas = tiles_m(k, p) * tiles_n(k, p) * p.batch * k.split_k * k.cluster_k;
  const std::int64_t ctas_of_sm = ceil_div(ctas, hw.sms);
  const int wanted = k.family == Family::sm90
                         ? launch_ctas_per_sm(k)
                         : std::max(1, (k.shifts() ? 16 : 8) * 32 / k.threads());
  const auto resident = static_cast<int>(std::clamp<std::int64_t>(ctas_of_sm, 1, wanted));
  const int room = std::min(hw.arch.shared_per_block,
                            hw.arch.shared_per_sm / resident - hw.arch.shared_reserved);
  // Two, four or as many as fit: a kernel for every K would be many kernels. A persistent CTA
  // fetches those of its next tile meanwhile.
  const std::int64_t k_tiles =
      k_tiles_of_cta(k, p) * (k.family == Family::sm90 ? std::max<std::int64_t>(ctas_of_sm, 1) : 1);
  const int most = k.family != Family::sm90 ? 6 : k_tiles <= 8 || k.block_k > 64 ? 8 : 16;
  int stages = k_tiles <= 2 ? 2 : k_tiles <= 4 ? 4 : most;
  for (; stages > 2; --stages) {
    k.num_stages = stages;
    if (shared_bytes(k) <= room) break;
  }
  return stages;
}

// Rows of (cluster) tiles to walk together: those that make the tiles of one wave a square of D. Of
// a single wave, neighbours fetch the same tile of the longer operand, whose readers are few: L2
// merges their requests where they come at about the same time, as those of neighbours do (measured
// on an H200: up to a third faster than the other way round).
int choose_raster_group(const KernelConfig& k, const GemmProblem& p, const HardwareSpec& hw) {
  if (k.family == Family::sm90 && !k.persistent && k.cluster() == 1)
    return p.n >= p.m ? WHOLE_COLUMNS : 0;
  const double wave = static_cast<double>(hw.sms) * std::max(1, ctas_per_sm(k, hw)) / k.cluster();
  const double rows = std::sqrt(wave * k.block_n * k.cluster_n / (k.block_m * k.cluster_m));
  return rows < 3 ? 2 : rows < 6 ? 4 : rows < 12 ? 8 : 16;
}

}  // namespace

KernelConfig complete(const Tiling& t, Family family, bool swap_ab, const GemmProblem& p,
                      const ProblemTraits& traits, const HardwareSpec& hw, const GemmConfig& wish) {
  KernelConfig k;
  k.family = family;
  k.swap_ab = swap_ab;
  k.in = traits.in;
  k.out = traits.out;
  k.a_major = traits.a_major;
  k.b_major = traits.b_major;
  k.a_copy_bytes = traits.a_copy_bytes;
  k.b_copy_bytes = traits.b_copy_bytes;
  k.d_vector = traits.d_vector;
  k.has_c = traits.has_c;
  if (p.fusion) {
    k.epilogue = p.fusion->epilogue;
    k.epilogue_id = fused_id(p);
    k.epilogue_access = fused_access(p);
    k.epilogue_transposed = p.fusion_transposed;
  }
  const bool first = t.shift && traits.shifts_a(), second = t.shift && traits.shifts_b();
  k.shift_a = wish.shift_a.value_or(swap_ab ? second : first);
  k.shift_b = wish.shift_b.value_or(swap_ab ? first : second);
  if (k.shifts_rows_of_a()) k.a_copy_bytes = 16;
  if (k.shifts_rows_of_b()) k.b_copy_bytes = 16;
  k.block_m = wish.block_m.value_or(t.block_m);
  k.block_n = wish.block_n.value_or(t.block_n);
  k.block_k = wish.block_k.value_or(t.block_k);
  k.swizzle = wish.swizzle.value_or(wish.swizzle_bytes.value_or(128) > 16);
  k.swizzle_bytes = wish.swizzle_bytes.value_or(family == Family::sm90 && !k.swizzle ? 16 : 128);
  // A cluster shares tiles or K, not both.
  k.cluster_k = wish.cluster_k.value_or(t.cluster_k);
  k.cluster_m = wish.cluster_m.value_or(k.cluster_k > 1 ? 1 : t.cluster_m);
  k.cluster_n = wish.cluster_n.value_or(k.cluster_k > 1 ? 1 : t.cluster_n);
  const bool sm90 = family == Family::sm90;
  // No split is empty: as many as asked for, or the most whose share of the k-tiles covers K.
  k.split_k = wish.split_k.value_or(t.split_k);
  if (k.split_k > 1 && k.block_k > 0) {
    const std::int64_t k_tiles = std::max<std::int64_t>(ceil_div(p.k, k.block_k), 1);
    k.split_k = static_cast<int>(std::min<std::int64_t>(k.split_k, k_tiles));
    k.split_k =
        static_cast<int>(ceil_div(k_tiles, std::max<std::int64_t>(k_tiles_of_split(k, p), 1)));
  }
  k.apart = p.gated() && (!sm90 || refuse_gated_tiles(p) != nullptr);
  // Four lanes' pairs of float32 partial sums are a whole sector as they are.
  k.staged_stores = wish.staged_stores.value_or(!(sm90 && k.split_k > 1));
  k.tma_stores = wish.tma_stores.value_or(sm90 && k.staged_stores && traits.tma_stores &&
                                          !k.finishes_apart() && !k.gate_along_m());
  k.dependent_launch = wish.dependent_launch.value_or(sm90);
  // Where a few tokens wait for their weights; of larger tiles the prefetch takes the copy engine
  // longer than it gains.
  k.prefetch = wish.prefetch.value_or(sm90 && k.dependent_launch && !k.shifts_rows_of_a() &&
                                      p.n <= 64 && k.block_n <= 64);
  k.multicast = wish.multicast.value_or(k.cluster_m * k.cluster_n > 1);
  k.ping_pong = wish.ping_pong.value_or(t.ping_pong);
  k.persistent = wish.persistent.value_or(k.ping_pong);
  k.num_stages = wish.num_stages.value_or(2);
  k.raster_group = wish.raster_group.value_or(0);
  if (family == Family::gemv) {  // nothing stays in shared memory, and D is a few elements
    k.warp_m = wish.warp_m.value_or(k.block_m);
    k.warp_n = wish.warp_n.value_or(t.warp_n);
    k.num_stages = wish.num_stages.value_or(t.num_stages);
    k.swizzle = wish.swizzle.value_or(false);
    k.staged_stores = wish.staged_stores.value_or(false);
    k.dependent_launch = wish.dependent_launch.value_or(hw.arch.tma_wgmma);
    // The last columns are no whole 16 bytes.
    if (k.b_major == Major::mn && p.n % 8 != 0) k.b_copy_bytes = 2;
    return k;
  }
  // Gates and ups alternate in eights.
  if (sm90 && k.gate_along_m()) k.block_m = wish.block_m.value_or((k.block_m + 15) / 16 * 16);
  k.warp_m = k.warp_n = 16;
  choose_warp_tile(k, p, hw, wish);
  if (!check(k, hw).empty()) return k;  // it will be refused, for the reason that check() gives
  // A CTA that computes one block tile needs no room for its stores beside the ring.
  const auto at_once = static_cast<double>(clusters_of(k.cluster(), hw) * k.cluster());
  if (!wish.persistent && sm90 && block_tiles(k, p) > at_once) k.persistent = true;
  if (!wish.num_stages) k.num_stages = choose_stages(k, p, hw);
  if (!wish.raster_group) k.raster_group = choose_raster_group(k, p, hw);
  return k;
}

}  // namespace fastgemm
