// plan(): candidates -> check -> cost -> pick, one function each.
#include "planner.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "canonical.hpp"
#include "fastgemm/error.hpp"
#include "fusion.hpp"
#include "repack.hpp"
#include "tensor_map.hpp"

namespace fastgemm {
namespace {

// Up to so many rows or columns gemv is considered without being asked for.
constexpr std::int64_t few_rows = 32;
constexpr std::int64_t most_gemv_k = std::int64_t{1} << 30;

// The widest access of 16, 8, 4 bytes that all addresses of the operand allow; 2 where its elements
// do not lie side by side.
int access_bytes(const MatrixView& v, std::int64_t contiguous_stride, std::int64_t other_stride) {
  const auto size = static_cast<std::int64_t>(size_of(v.dtype));
  if (contiguous_stride != 1) return static_cast<int>(size);
  const std::uint64_t bits = reinterpret_cast<std::uintptr_t>(v.data) |
                             static_cast<std::uint64_t>(other_stride * size) |
                             static_cast<std::uint64_t>(v.batch_stride * size);
  for (int bytes : {16, 8, 4})
    if (bytes > size && bits % bytes == 0) return bytes;
  return static_cast<int>(size);
}

std::int64_t magnitude(std::int64_t x) { return x < 0 ? -x : x; }

int copy_bytes(const MatrixView& v, Major major, std::int64_t outer_stride, std::int64_t k_stride) {
  return major == Major::k ? access_bytes(v, k_stride, outer_stride)
                           : access_bytes(v, outer_stride, k_stride);
}

// Elements of D or C that an access moves: 16 bytes of them (8 bytes of 8-bit ones: more would be
// much code) or, for the sake of few kernels, one.
int output_vector(const MatrixView& v) {
  const int bytes = access_bytes(v, v.col_stride, v.row_stride);
  return bytes == 16 ? std::min(16 / static_cast<int>(size_of(v.dtype)), 8) : 1;
}

// The families worth considering for a problem, best first.
std::vector<Family> families_for(const GemmProblem& p, const ProblemTraits& traits,
                                 const ArchSpec& arch, const GemmConfig& wish) {
  if (wish.family) return {*wish.family};
  std::vector<Family> families = {Family::sm80};
  if (!arch.cp_async || !arch.mma_m16n8k16)
    families = {arch.ldmatrix ? Family::sm75 : Family::sm70};
  else if (arch.tma_wgmma && traits.tma)
    families = {Family::sm90, Family::sm80};
  if (std::min(p.m, p.n) <= few_rows) families.push_back(Family::gemv);
  return families;
}

// The warp tile with the least shared-memory traffic among those that keep the accumulators in
// registers and give the four schedulers of an SM a warp each.
void choose_warp_tile(KernelConfig& k, const GemmConfig& wish) {
  if (k.family == Family::sm90) {
    k.warp_m = wish.warp_m.value_or(k.block_m <= 64 ? k.block_m : k.block_m <= 192 ? 64 : 128);
    k.warp_n = wish.warp_n.value_or(k.block_n);
    return;
  }
  // Both operands transposed on the way from shared memory: their addresses take registers too.
  const bool transposes_both = k.a_major == Major::mn && k.b_major == Major::mn;
  const int most_accumulators = k.family == Family::sm80 && !transposes_both ? 128 : 64;
  double best = 1e30;
  for (int m = 16; m <= std::min(k.block_m, 128); m += 16)
    for (int n = 16; n <= std::min(k.block_n, 128); n += 16) {
      if (k.block_m % m || k.block_n % n || wish.warp_m.value_or(m) != m ||
          wish.warp_n.value_or(n) != n)
        continue;
      const int warps = k.block_m / m * (k.block_n / n);
      const int accumulators = m * n / 32;
      double traffic = 1.0 / m + 1.0 / n;
      if (accumulators > most_accumulators) traffic += 10;
      if (warps < 4) traffic += 4 - warps;
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
// that many CTAs exist.
int choose_stages(KernelConfig k, const GemmProblem& p, const HardwareSpec& hw) {
  if (k.family < Family::sm80) return 2;
  const std::int64_t ctas = tiles_m(k, p) * tiles_n(k, p) * p.batch * k.split_k * k.cluster_k;
  const std::int64_t ctas_of_sm = ceil_div(ctas, hw.sms);
  const int wanted =
      k.family == Family::sm90 ? launch_ctas_per_sm(k) : std::max(1, 8 * 32 / k.threads());
  const auto resident = static_cast<int>(std::clamp<std::int64_t>(ctas_of_sm, 1, wanted));
  const int room = std::min(hw.arch.shared_per_block,
                            hw.arch.shared_per_sm / resident - hw.arch.shared_reserved);
  // Two, four or as many as fit: a kernel for every K would be many kernels.
  const std::int64_t k_tiles = k_tiles_of_cta(k, p);
  const int most = k.family != Family::sm90 ? 6 : k_tiles <= 8 || k.block_k > 64 ? 8 : 16;
  int stages = k_tiles <= 2 ? 2 : k_tiles <= 4 ? 4 : most;
  for (; stages > 2; --stages) {
    k.num_stages = stages;
    if (shared_bytes(k) <= room) break;
  }
  return stages;
}

// Rows of (cluster) tiles to walk together: those that make the tiles of one wave a square of D.
int choose_raster_group(const KernelConfig& k, const HardwareSpec& hw) {
  const double wave = static_cast<double>(hw.sms) * std::max(1, ctas_per_sm(k, hw)) / k.cluster();
  const double rows = std::sqrt(wave * k.block_n * k.cluster_n / (k.block_m * k.cluster_m));
  return rows < 3 ? 2 : rows < 6 ? 4 : rows < 12 ? 8 : 16;
}

KernelConfig complete(const Tiling& t, Family family, const GemmProblem& p,
                      const ProblemTraits& traits, const HardwareSpec& hw, const GemmConfig& wish) {
  KernelConfig k;
  k.family = family;
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
    k.epilogue_id = traits.epilogue_id;
    k.epilogue_access = fused_access(p);
    k.epilogue_transposed = p.fusion_transposed;
  }
  k.block_m = wish.block_m.value_or(t.block_m);
  k.block_n = wish.block_n.value_or(t.block_n);
  k.block_k = wish.block_k.value_or(t.block_k);
  k.swizzle = wish.swizzle.value_or(true);
  k.staged_stores = wish.staged_stores.value_or(true);
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
    k.split_k = static_cast<int>(ceil_div(k_tiles, k_tiles_of_split(k, p)));
  }
  k.apart = p.gated() && (!sm90 || refuse_gated_tiles(p) != nullptr);
  k.tma_stores = wish.tma_stores.value_or(sm90 && k.staged_stores && traits.tma_stores &&
                                          !k.finishes_apart() && !k.gate_along_m());
  k.dependent_launch = wish.dependent_launch.value_or(sm90);
  // Where a few tokens wait for their weights; of larger tiles the prefetch takes the copy engine
  // longer than it gains.
  k.prefetch = wish.prefetch.value_or(sm90 && k.dependent_launch && p.n <= 64 && k.block_n <= 64);
  k.multicast = wish.multicast.value_or(k.cluster_m * k.cluster_n > 1);
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
  choose_warp_tile(k, wish);
  if (!check(k, hw).empty()) return k;  // it will be refused, for the reason that check() gives
  if (!wish.num_stages) k.num_stages = choose_stages(k, p, hw);
  if (!wish.raster_group) k.raster_group = choose_raster_group(k, hw);
  return k;
}

struct RepackChoice {
  Repack which;
  double us;
  const char* refused;
};

// All kernels that the strategies propose for one orientation of the problem, with reasons for
// those that cannot run. `p`: as the kernel finds it, with the copies that `repack` makes.
void add_candidates(std::vector<Candidate>& all, const GemmProblem& p, const RepackChoice& repack,
                    bool swap_ab, Family family, const HardwareSpec& hw, const GemmConfig& wish) {
  const ProblemTraits traits = traits_of(p);
  const char* no_tma = refuse_tma(p, traits);
  const char* no_tma_stores = refuse_tma_stores(p);
  for (const Strategy& s : strategy_list()) {
    if (wish.strategy && *wish.strategy != s.name) continue;
    if (s.gemv != (family == Family::gemv)) continue;
    for (const Tiling& t : s.propose(p, hw, family)) {
      Candidate c;
      c.strategy = s.name;
      c.kernel = complete(t, family, p, traits, hw, wish);
      c.kernel.swap_ab = swap_ab;
      c.kernel.repack_a = repack.which.a;
      c.kernel.repack_b = repack.which.b;
      const auto same = [&](const Candidate& o) { return o.kernel == c.kernel; };
      if (std::any_of(all.begin(), all.end(), same)) continue;
      c.refused = repack.refused ? repack.refused : check(c.kernel, hw);
      if (c.refused.empty() && no_tma && family == Family::sm90) c.refused = no_tma;
      if (c.refused.empty() && family == Family::sm90 && c.kernel.block_k > 64 && p.k % 64 != 0)
        c.refused = "block_k above 64 needs k to be a multiple of 64";
      if (c.refused.empty() && c.kernel.cluster_k > 1 &&
          k_tiles_of_last_split(c.kernel, p) < c.kernel.cluster_k)
        c.refused = "cluster_k needs a k-tile for each CTA of the cluster";
      if (c.refused.empty() && family == Family::gemv && p.k > most_gemv_k)
        c.refused = "family gemv counts k to 2^30";
      if (c.refused.empty() && no_tma_stores && c.kernel.tma_stores) c.refused = no_tma_stores;
      if (c.refused.empty()) c.cost = cost(c.kernel, p, hw);
      c.cost.repack_us = repack.us;
      c.cost.total_us += repack.us;
      all.push_back(std::move(c));
    }
  }
}

std::vector<Candidate> candidates(const GemmProblem& p, const HardwareSpec& hw,
                                  const GemmConfig& wish) {
  const std::vector<std::string> names = strategies();
  if (wish.strategy && std::find(names.begin(), names.end(), *wish.strategy) == names.end()) {
    std::string known;
    for (const std::string& n : names) known += (known.empty() ? "" : ", ") + n;
    throw InvalidValue("unknown tiling strategy '" + *wish.strategy + "'; there are " + known);
  }
  std::vector<Candidate> all;
  for (const Repack which : repack_choices(p, hw.arch, wish)) {
    const GemmProblem q = repacked(p, which);
    const RepackChoice repack = {which, repack_us(p, which, hw), refuse_repack(p, which, wish)};
    for (Family family : families_for(q, traits_of(q), hw.arch, wish)) {
      // gemv streams the longer side.
      const bool gemv = family == Family::gemv;
      if (!wish.swap_ab.value_or(gemv && q.n < q.m))
        add_candidates(all, q, repack, false, family, hw, wish);
      if (wish.swap_ab.value_or(gemv ? q.n < q.m : family == Family::sm90))
        add_candidates(all, transposed(q), repack, true, family, hw, wish);
    }
  }
  return all;
}

[[noreturn]] void refuse(const std::vector<Candidate>& all, const GemmProblem& p,
                         const HardwareSpec& hw, const GemmConfig& wish) {
  std::string message =
      "no kernel for " + describe(p) + " on " + hw.name + " (" + arch_name(hw.arch.cc) + ")";
  if (wish != GemmConfig{}) message += " with config " + wish.str();
  if (all.empty())
    throw InvalidValue(message + ": strategy '" + wish.strategy.value_or("?") +
                       "' proposes nothing for this shape");
  const Candidate& first = all.front();
  message += ": [" + first.kernel.str() + "] " + first.refused;
  const char* no_tma = refuse_tma(p, traits_of(p));
  const bool left_out = std::none_of(
      all.begin(), all.end(), [](const Candidate& c) { return c.kernel.family == Family::sm90; });
  if (hw.arch.tma_wgmma && !wish.family && no_tma && left_out)
    message += std::string(". Family sm90 is left out: ") + no_tma;
  if (p.a.dtype == DType::bf16 && !hw.arch.bf16) throw InvalidType(message);
  throw InvalidValue(message);
}

std::string format(const char* pattern, double a, double b = 0, double c = 0) {
  char text[160];
  std::snprintf(text, sizeof text, pattern, a, b, c);
  return text;
}

}  // namespace

Major major_of(std::int64_t outer_stride, std::int64_t k_stride) {
  if (k_stride == 1) return Major::k;
  if (outer_stride == 1) return Major::mn;
  return magnitude(k_stride) <= magnitude(outer_stride) ? Major::k : Major::mn;
}

ProblemTraits traits_of(const GemmProblem& p) {
  ProblemTraits t;
  t.in = p.a.dtype;
  t.out = p.d.dtype;
  t.a_major = major_of(p.a.row_stride, p.a.col_stride);
  t.b_major = major_of(p.b.col_stride, p.b.row_stride);
  t.a_runs = runs_of(p.a, t.a_major, p.a.row_stride, p.a.col_stride);
  t.b_runs = runs_of(p.b, t.b_major, p.b.col_stride, p.b.row_stride);
  t.a_copy_bytes = copy_bytes(p.a, t.a_major, p.a.row_stride, p.a.col_stride);
  t.b_copy_bytes = copy_bytes(p.b, t.b_major, p.b.col_stride, p.b.row_stride);
  t.has_c = p.has_c();
  t.d_vector = output_vector(p.d);
  if (t.has_c) t.d_vector = std::min(t.d_vector, output_vector(p.c));
  t.tma = refuse_tma(p, t) == nullptr;
  t.tma_stores = refuse_tma_stores(p) == nullptr;
  t.epilogue_id = fused_id(p);
  return t;
}

GemmProblem oriented(const KernelConfig& k, const GemmProblem& p) {
  return k.swap_ab ? transposed(p) : p;
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

std::int64_t workspace_pitch(const GemmProblem& p) { return (p.n + 7) / 8 * 8; }

std::size_t workspace_bytes(const GemmProblem& p, const KernelConfig& k) {
  return static_cast<std::size_t>(p.batch * k.split_k * p.m * workspace_pitch(p)) * sizeof(float);
}

std::uint64_t ProblemTraits::code() const {
  std::uint64_t code = 0;
  for (int field :
       {static_cast<int>(in), static_cast<int>(out), static_cast<int>(a_major),
        static_cast<int>(b_major), static_cast<int>(a_runs), static_cast<int>(b_runs), a_copy_bytes,
        b_copy_bytes, d_vector, has_c ? 1 : 0, tma ? 1 : 0, tma_stores ? 1 : 0})
    code = code << 5 | static_cast<std::uint64_t>(field);
  return code;
}

std::int64_t tiles_m(const KernelConfig& k, const GemmProblem& p) {
  return ceil_div(p.m, k.block_m);
}
std::int64_t tiles_n(const KernelConfig& k, const GemmProblem& p) {
  return ceil_div(p.n, k.block_n);
}

Plan plan(const GemmProblem& problem, const HardwareSpec& hardware, const GemmConfig& config) {
  validate(problem);
  Plan result;
  result.problem = canonical(problem);
  result.hardware = hardware;
  const GemmProblem& p = result.problem;

  std::vector<Candidate> all = candidates(p, hardware, config);
  std::stable_sort(all.begin(), all.end(), [](const Candidate& x, const Candidate& y) {
    if (x.refused.empty() != y.refused.empty()) return x.refused.empty();
    return x.cost.total_us < y.cost.total_us;
  });
  if (all.empty() || !all.front().refused.empty()) refuse(all, p, hardware, config);

  const Candidate& pick = all.front();
  result.kernel = pick.kernel;
  result.strategy = pick.strategy;
  result.cost = pick.cost;
  result.threads = pick.kernel.threads();
  result.shared_bytes = shared_bytes(pick.kernel);
  result.ctas_per_sm = ctas_per_sm(pick.kernel, hardware);
  const GemmProblem computed = oriented(pick.kernel, p);
  result.ctas = grid_size(pick.kernel, computed, hardware);
  // Kernels count tiles in 32 bits, persistent ones too.
  if (const double tiles = block_tiles(pick.kernel, computed); tiles > INT32_MAX)
    throw InvalidValue(describe(p) + " needs " + format("%.0f", tiles) + " CTAs of [" +
                       pick.kernel.str() + "], the limit of a grid is 2147483647: split the batch");
  result.considered = std::move(all);
  return result;
}

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
  const auto source = [](bool copied, int bytes) {
    return copied ? std::string("copied into aligned rows first")
                  : "read " + std::to_string(bytes) + " bytes at a time";
  };
  std::string s = str() + "\n";
  s += "  hardware   " + hardware.name + ": " + std::to_string(hardware.sms) + " SMs, " +
       format("%.2f GHz, %.0f GB/s, L2 %.0f MB\n", hardware.clock_ghz, hardware.dram_gbps,
              hardware.l2_bytes / 1e6);
  const ProblemTraits asked =
      traits_of(problem);  // a kernel with swapped operands has them the other way round
  s += "  operands   A contiguous along " + major(asked.a_major, "m") + ", " +
       source(kernel.repack_a, asked.a_copy_bytes) + "; B along " + major(asked.b_major, "n") +
       ", " + source(kernel.repack_b, asked.b_copy_bytes) + "; D " +
       (kernel.tma_stores ? std::string("by the TMA")
                          : "in vectors of " + std::to_string(kernel.d_vector)) +
       "\n";
  s += "  predicted  " +
       format("Tensor Cores %.1f us, shared memory %.1f, L2 %.1f, ", cost.tensor_us, cost.shared_us,
              cost.l2_us) +
       format("DRAM %.1f, narrow copies %.1f, ", cost.dram_us, cost.copy_us) +
       format("repacking %.1f, adding up splits %.1f, overhead %.1f\n", cost.repack_us,
              cost.reduce_us, cost.overhead_us);
  s += "  considered\n";
  for (const Candidate& c : considered)
    s += c.refused.empty()
             ? "    " + format("%8.1f us  ", c.cost.total_us) + c.kernel.str() + " (" + c.strategy +
                   ")\n"
             : "     refused    " + c.kernel.str() + " (" + c.strategy + "): " + c.refused + "\n";
  return s;
}

}  // namespace fastgemm
