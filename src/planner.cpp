// plan(): candidates -> check -> cost -> pick, one function each.
#include "planner.hpp"

#include <algorithm>

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

// The families worth considering for a problem, best first.
std::vector<Family> families_for(const GemmProblem& p, const ProblemTraits& traits,
                                 const ArchSpec& arch, const GemmConfig& wish) {
  if (wish.family) return {*wish.family};
  std::vector<Family> families = {Family::sm80};
  if (!arch.cp_async || !arch.mma_m16n8k16)
    families = {arch.ldmatrix ? Family::sm75 : Family::sm70};
  else if (arch.tma_wgmma &&
           !refuse_tma(p, traits, traits.shifts_a() && wish.shift_a.value_or(true),
                       traits.shifts_b() && wish.shift_b.value_or(true)))
    families = {Family::sm90, Family::sm80};
  if (std::min(p.m, p.n) <= few_rows) families.push_back(Family::gemv);
  return families;
}

struct RepackChoice {
  Repack which;
  double us;
  const char* refused;
};

// Of k-tiles of several swizzle atoms, the TMA sees K in whole atoms.
std::string refuse_columns(const GemmProblem& p, const KernelConfig& k) {
  const int span = k.swizzle_bytes / 2;
  if ((k.a_major == Major::mn && k.b_major == Major::mn) || k.block_k <= span || p.k % span == 0)
    return {};
  return "block_k above " + std::to_string(span) + " needs k to be a multiple of " +
         std::to_string(span) + ", with swizzle_bytes " + std::to_string(k.swizzle_bytes);
}

// Rows that begin anywhere: family sm90 shifts them, in CTAs that share no tiles with others; sm80
// reads them piecemeal or shifts them: each tile for both.
std::vector<Tiling> with_shifts(std::vector<Tiling> tilings, Family family,
                                const ProblemTraits& traits) {
  if (!traits.shifts_a() && !traits.shifts_b()) return tilings;
  if (family == Family::sm90) {
    const auto shares = [](const Tiling& t) { return t.cluster_m * t.cluster_n > 1; };
    tilings.erase(std::remove_if(tilings.begin(), tilings.end(), shares), tilings.end());
    for (Tiling& t : tilings) t.shift = true;
  }
  if (family != Family::sm80) return tilings;
  const std::size_t count = tilings.size();
  for (std::size_t i = 0; i < count; ++i) {
    tilings.push_back(tilings[i]);
    tilings.back().shift = true;
  }
  return tilings;
}

const char* refuse_shift(const ProblemTraits& traits, const KernelConfig& k) {
  const bool apart = (k.shifts_rows_of_a() && traits.a_runs == Runs::none) ||
                     (k.shifts_rows_of_b() && traits.b_runs == Runs::none);
  return apart ? "shift_a and shift_b need a unit stride in their operand" : nullptr;
}

// All kernels that the strategies propose for one orientation of the problem, with reasons for
// those that cannot run. `p`: as the kernel finds it, with the copies that `repack` makes.
void add_candidates(std::vector<Candidate>& all, const GemmProblem& p, const RepackChoice& repack,
                    bool swap_ab, Family family, const HardwareSpec& hw, const GemmConfig& wish) {
  const ProblemTraits traits = traits_of(p);
  const char* no_tma_stores = refuse_tma_stores(p);
  for (const Strategy& s : strategy_list()) {
    if (wish.strategy && *wish.strategy != s.name) continue;
    if (s.gemv != (family == Family::gemv)) continue;
    for (const Tiling& t : with_shifts(s.propose(p, hw, family), family, traits)) {
      Candidate c;
      c.strategy = s.name;
      c.kernel = complete(t, family, swap_ab, p, traits, hw, wish);
      c.kernel.repack_a = repack.which.a;
      c.kernel.repack_b = repack.which.b;
      const auto same = [&](const Candidate& o) { return o.kernel == c.kernel; };
      if (std::any_of(all.begin(), all.end(), same)) continue;
      const char* no_shift = refuse_shift(traits, c.kernel);
      c.refused = repack.refused ? repack.refused : no_shift ? no_shift : check(c.kernel, hw);
      if (c.refused.empty() && family == Family::sm90) {
        const char* no_tma =
            refuse_tma(p, traits, c.kernel.shifts_rows_of_a(), c.kernel.shifts_rows_of_b());
        c.refused = no_tma ? no_tma : refuse_columns(p, c.kernel);
      }
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

}  // namespace

GemmProblem oriented(const KernelConfig& k, const GemmProblem& p) {
  return k.swap_ab ? transposed(p) : p;
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
    throw InvalidValue(
        describe(p) + " needs " + std::to_string(static_cast<std::int64_t>(std::min(tiles, 9e18))) +
        " CTAs of [" + pick.kernel.str() + "], the limit of a grid is 2147483647: split the batch");
  result.considered = std::move(all);
  return result;
}

}  // namespace fastgemm
