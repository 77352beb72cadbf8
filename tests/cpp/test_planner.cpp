// plan(): every product gets a kernel that can run on every architecture, always the same one, and
// few of them.
#include <cmath>
#include <thread>
#include <unordered_set>

#include "planner.hpp"
#include "plans.hpp"
#include "tensor_map.hpp"

namespace fastgemm {
namespace {

// Block tiles with those of the clusters that hang over the edge, and of every split of K.
std::int64_t tiles(const Plan& p) {
  const bool swapped = p.kernel.swap_ab;
  const std::int64_t rows = swapped ? p.problem.n : p.problem.m;
  const std::int64_t cols = swapped ? p.problem.m : p.problem.n;
  const std::int64_t cluster_rows = ceil_div(ceil_div(rows, p.kernel.block_m), p.kernel.cluster_m);
  const std::int64_t cluster_cols = ceil_div(ceil_div(cols, p.kernel.block_n), p.kernel.cluster_n);
  return cluster_rows * cluster_cols * p.kernel.cluster() * p.problem.batch * p.kernel.split_k;
}

void expect_fits(const Plan& p, const HardwareSpec& hw) {
  const KernelConfig& k = p.kernel;
  EXPECT_EQ(check(k, hw), "") << p.str();
  EXPECT_EQ(k.in, p.problem.a.dtype);
  EXPECT_EQ(k.out, p.problem.d.dtype);
  EXPECT_EQ(k.has_c, p.problem.has_c());
  EXPECT_EQ(p.threads, k.threads());
  EXPECT_EQ(p.shared_bytes, shared_bytes(k));
  EXPECT_LE(p.shared_bytes, hw.arch.shared_per_block) << p.str();
  EXPECT_LE(p.ctas_per_sm * (p.shared_bytes + hw.arch.shared_reserved), hw.arch.shared_per_sm)
      << p.str();
  EXPECT_LE(p.threads, 1024) << p.str();
  EXPECT_LE(p.ctas_per_sm * p.threads, hw.arch.warps_per_sm * 32) << p.str();
  EXPECT_GE(p.ctas_per_sm, 1) << p.str();
  const std::int64_t k_tiles = ceil_div(p.problem.k, k.block_k);
  EXPECT_TRUE(k.split_k == 1 || (k.split_k - 1) * ceil_div(k_tiles, k.split_k) < k_tiles)
      << "a split is empty: " << p.str();
  if (k.family == Family::sm90) {
    EXPECT_TRUE(hw.arch.tma_wgmma);
    EXPECT_GT(p.problem.k, 0);
    EXPECT_TRUE(k.block_k == 64 || p.problem.k % 64 == 0) << p.str();
    EXPECT_EQ(p.ctas % k.cluster(), 0) << p.str();
    EXPECT_TRUE(p.ctas > 0 && p.ctas <= tiles(p)) << p.str();
    EXPECT_LE(p.ctas, std::int64_t{hw.sms} * p.ctas_per_sm) << "not all at once: " << p.str();
    if (k.tma_stores) {
      EXPECT_EQ(refuse_tma_stores(p.problem), nullptr) << p.str();
    }
  } else {
    EXPECT_EQ(p.ctas, tiles(p)) << p.str();
  }
}

void expect_reasons(const Plan& p) {
  const Cost& c = p.cost;
  for (double term : {c.tensor_us, c.shared_us, c.latency_us, c.l2_us, c.dram_us, c.copy_us,
                      c.repack_us, c.reduce_us, c.overhead_us, c.power_us})
    EXPECT_TRUE(std::isfinite(term) && term >= 0 && term <= c.total_us * 1.0001) << p.explain();
  EXPECT_TRUE(c.overhead_us > 0 && c.waves > 0 && std::isfinite(c.total_us)) << p.explain();
  ASSERT_FALSE(p.considered.empty());
  EXPECT_EQ(p.considered[0].kernel, p.kernel);
  EXPECT_EQ(p.considered[0].strategy, p.strategy);
  for (std::size_t i = 0; i + 1 < p.considered.size(); ++i) {
    const Candidate &one = p.considered[i], &next = p.considered[i + 1];
    EXPECT_TRUE(one.refused.empty() || !next.refused.empty()) << "refused come last";
    EXPECT_TRUE(!next.refused.empty() || one.cost.total_us <= next.cost.total_us) << p.explain();
  }
}

Plan expect_plan(const GemmProblem& problem, const HardwareSpec& hw) {
  try {
    Plan p = plan(problem, hw);
    expect_fits(p, hw);
    expect_reasons(p);
    return p;
  } catch (const std::exception& error) {
    ADD_FAILURE() << hw.name << ": " << describe(problem) << ": " << error.what();
    return {};
  }
}

// R12: no shape that crashes. Every extent of 1..300 on every axis, in mixed company.
TEST(Planner, EveryExtentUpTo300IsPlannedOnEveryArchitecture) {
  Dice dice(1);
  for (const HardwareSpec& hw : targets())
    for (DType dtype : dtypes_of(hw))
      for (int extent = 1; extent <= 300 && !HasFailure(); ++extent) {
        const int other = dice.extent(300), third = dice.extent(300);
        expect_plan(any_problem(dice, dtype, extent, other, third), hw);
        expect_plan(any_problem(dice, dtype, other, extent, third), hw);
        expect_plan(any_problem(dice, dtype, other, third, extent), hw);
      }
}

TEST(Planner, EveryCombinationOfTelltaleExtentsIsPlanned) {
  const std::vector<int> extents = {1,   2,   8,   15,  16,  17,   31,   33,  64,
                                    127, 129, 255, 300, 768, 1152, 1536, 7168};
  Dice dice(2);
  for (const HardwareSpec& hw : targets())
    for (int m : extents)
      for (int n : extents)
        for (int k : extents) {
          if (HasFailure()) return;
          expect_plan(any_problem(dice, dice.pick(dtypes_of(hw)), m, n, k), hw);
        }
}

TEST(Planner, ExtremeExtentsArePlanned) {
  const std::int64_t long_one = 1 << 27;
  const std::vector<std::vector<std::int64_t>> shapes = {
      {long_one, 1, 1}, {1, long_one, 1}, {1, 1, long_one}, {long_one, 8, 8}, {8, long_one, 8},
      {8, 8, long_one}, {5, 7, 0},        {512, 512, 0},    {1, 1, 1},
  };
  for (const HardwareSpec& hw : targets())
    for (const auto& s : shapes)
      for (const char* layout : {"nn", "nt", "tn", "tt"})
        expect_plan(packed_problem(s[0], s[1], s[2], DType::f16, layout), hw);
  for (const HardwareSpec& hw : targets())
    expect_plan(packed_problem(5, 7, 9, DType::f16, "nt", long_one), hw);
}

TEST(Planner, EachGenerationGetsItsFamily) {
  const GemmProblem p = packed_problem(4096, 4096, 4096, DType::f16);
  for (const auto& [arch, family] :
       std::vector<std::pair<const char*, Family>>{{"sm_70", Family::sm70},
                                                   {"sm_75", Family::sm75},
                                                   {"sm_80", Family::sm80},
                                                   {"sm_86", Family::sm80},
                                                   {"sm_89", Family::sm80},
                                                   {"sm_90", Family::sm90},
                                                   {"sm_100", Family::sm80},
                                                   {"sm_120", Family::sm80},
                                                   {"sm_121", Family::sm80}})
    EXPECT_EQ(plan(p, hardware(arch)).kernel.family, family) << arch;
}

TEST(Planner, LargeProductsOnHopperUseItsUnits) {
  const KernelConfig k =
      plan(packed_problem(8192, 8192, 8192, DType::bf16), hardware("H200")).kernel;
  EXPECT_GE(k.block_m * k.block_n, 128 * 192) << k.str();
  EXPECT_TRUE(k.tma_stores && k.dependent_launch && k.swizzle && k.staged_stores) << k.str();
  EXPECT_GE(k.num_stages, 3) << k.str();
}

TEST(Planner, FewRowsDoNotPayForManyMoreOfThem) {
  for (const char* card : {"H200", "A100", "L40S"})
    for (int few : {1, 8, 16}) {
      const Plan rows = plan(packed_problem(few, 4096, 4096, DType::f16), hardware(card));
      const Plan cols = plan(packed_problem(4096, few, 4096, DType::f16), hardware(card));
      for (const Plan& p : {rows, cols}) {
        const bool first = (p.problem.m == few) != p.kernel.swap_ab;
        EXPECT_LE(first ? p.kernel.block_m : p.kernel.block_n, 32) << p.str();
      }
    }
}

TEST(Planner, VectorsAreStreamedPastTheTensorCores) {
  for (const char* card : {"H200", "A100", "L40S", "T4", "V100", "RTX 5090"})
    for (const auto& [layout, few] :
         std::vector<std::pair<const char*, std::int64_t>>{{"nn", 1}, {"nt", 1}, {"nt", 2}}) {
      const Plan rows = plan(packed_problem(few, 4096, 4096, DType::f16, layout), hardware(card));
      if (few > 1 && std::string(card) == "H200") {  // the TMA is faster there (measured)
        EXPECT_EQ(rows.kernel.family, Family::sm90) << rows.str();
        continue;
      }
      EXPECT_EQ(rows.kernel.family, Family::gemv) << rows.str();
      EXPECT_TRUE(!rows.kernel.swap_ab && rows.kernel.block_m == few) << rows.str();
      EXPECT_GE(rows.ctas, rows.hardware.sms / 2) << rows.str();
      const Plan cols = plan(packed_problem(4096, few, 4096, DType::f16, layout), hardware(card));
      EXPECT_EQ(cols.kernel.family, Family::gemv) << cols.str();
      EXPECT_EQ(cols.kernel.swap_ab, cols.problem.n == few) << cols.str();
      EXPECT_EQ(cols.kernel.block_m, few) << cols.str();
    }
}

// Their operands may lie anyhow: nothing is copied. Long rows that begin anywhere are shifted.
TEST(Planner, VectorsAreStreamedFromWhereverTheyLie) {
  for (const char* layout : {"nn", "nt"})
    for (const auto& [n, k] : {std::pair{4095, 4095}, {4096, 4095}, {4095, 4096}, {2047, 1023}}) {
      const Plan p = plan(packed_problem(1, n, k, DType::bf16, layout), hardware("H200"));
      const bool odd_rows = (layout == std::string("nn") ? n : k) % 8 != 0;
      EXPECT_EQ(p.kernel.shift_b, odd_rows && k > 2048) << p.str();
      EXPECT_EQ(p.kernel.family == Family::gemv, !p.kernel.shift_b) << p.str();
      EXPECT_FALSE(p.kernel.repack_a || p.kernel.repack_b) << p.str();
    }
}

TEST(Planner, WhatTheTmaCannotReadIsRepackedOrShiftedOrGoesToSm80) {
  const HardwareSpec hw = hardware("H200");
  GemmConfig in_place;
  in_place.repack_a = in_place.repack_b = false;
  const GemmProblem good = packed_problem(512, 512, 512, DType::f16);
  ASSERT_EQ(plan(good, hw).kernel.family, Family::sm90);
  GemmProblem shifted = placed(512, 512, 512), pitched = good,
              no_k = packed_problem(512, 512, 0, DType::f16), far = good;
  shifted.a.data = address(kBase + 2);
  pitched.b.col_stride = 513;
  far.a.row_stride = std::int64_t{1} << 39;
  for (const GemmProblem& p : {no_k, far})
    EXPECT_EQ(plan(p, hw, in_place).kernel.family, Family::sm80) << describe(p);
  for (const GemmProblem& p : {shifted, pitched, far}) {
    const KernelConfig k = plan(p, hw).kernel, here = plan(p, hw, in_place).kernel;
    EXPECT_TRUE(k.family == Family::sm80 || k.repack_a || k.repack_b || k.shift_a || k.shift_b)
        << k.str();
    EXPECT_TRUE(here.family == Family::sm80 || here.shift_a || here.shift_b) << here.str();
  }
}

TEST(Planner, WhatTheTmaCannotWriteIsStoredByThreads) {
  const HardwareSpec hw = hardware("H200");
  ASSERT_TRUE(plan(placed(512, 512, 512), hw).kernel.tma_stores);
  const GemmProblem wide = packed_problem(512, 512, 512, DType::f16, "nt", 1, DType::f32);
  GemmProblem shifted = placed(512, 512, 512), pitched = shifted;
  shifted.d.data = address((std::int64_t{1} << 47) + 2);
  pitched.d.row_stride = 513;
  for (const GemmProblem& p : {wide, shifted, pitched, placed(512, 512, 512, "nt", 1, true)}) {
    const KernelConfig k = plan(p, hw).kernel;
    EXPECT_EQ(k.family, Family::sm90) << describe(p);
    EXPECT_FALSE(k.tma_stores) << describe(p);
  }
}

TEST(Planner, AColumnMajorResultIsTheTransposedProduct) {
  for (const char* card : {"H200", "A100", "T4"}) {
    GemmProblem p = placed(1000, 200, 320, "nn");
    p.d.row_stride = 1, p.d.col_stride = 1000;
    const Plan by_columns = plan(p, hardware(card));
    const Plan transposed = plan(placed(200, 1000, 320, "tt"), hardware(card));
    EXPECT_EQ(by_columns.kernel, transposed.kernel);
    EXPECT_EQ(by_columns.problem.m, 200);
    EXPECT_EQ(by_columns.problem.a.data, p.b.data);
    EXPECT_EQ(by_columns.problem.d.col_stride, 1);
  }
}

TEST(Planner, EqualQuestionsGetEqualAnswersInEveryThread) {
  Dice dice(3);
  for (const HardwareSpec& hw : targets()) {
    const GemmProblem p =
        any_problem(dice, DType::f16, dice.extent(2000), dice.extent(2000), dice.extent(2000));
    const std::string answer = plan(p, hw).explain();
    std::vector<std::string> answers(4);
    std::vector<std::thread> threads;
    for (std::string& mine : answers) threads.emplace_back([&] { mine = plan(p, hw).explain(); });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& mine : answers) EXPECT_EQ(mine, answer);
  }
}

// R60: a model with varying M must not compile for long. The bounds leave little room above what
// was counted: 59 and 16.
TEST(Planner, VaryingMNeedsFewKernels) {
  for (const auto& [card, most] :
       std::vector<std::pair<const char*, std::size_t>>{{"H200", 60}, {"A100", 16}}) {
    std::unordered_set<KernelConfig, KernelConfigHash> kernels;
    for (int m = 1; m <= 16384; ++m)
      kernels.insert(plan(packed_problem(m, 4096, 4096, DType::bf16), hardware(card)).kernel);
    std::printf("%s: %zu kernels for M = 1..16384, N = K = 4096\n", card, kernels.size());
    EXPECT_LE(kernels.size(), most) << card;
  }
}

TEST(Planner, ExplainNamesEveryTermAndTheBestCandidates) {
  for (const char* card : {"H200", "A100", "T4"}) {
    const Plan p = plan(packed_problem(1000, 3000, 512, DType::f16, "tn"), hardware(card));
    const std::string text = p.explain();
    expect_words(text, {p.str(),     p.strategy,     hardware(card).name,
                        "SMs",       "GHz",          "GB/s",
                        "L2",        "Tensor Cores", "shared memory",
                        "latency",   "DRAM",         "narrow copies",
                        "repacking", "splits",       "overhead",
                        "waves",     "us predicted", "A contiguous along",
                        "B along",   "bytes",        "; D "});
    expect_words(text, {"power limit"});
    std::size_t able = 0;
    for (const Candidate& c : p.considered)
      if (!c.refused.empty() || ++able <= 30) expect_words(text, {c.kernel.str(), c.refused});
    if (able > 30) expect_words(text, {"and " + std::to_string(able - 30) + " slower ones, up to"});
    EXPECT_EQ(p.str().find('\n'), std::string::npos);
    expect_words(p.str(), {describe(p.problem), arch_name(p.hardware.arch.cc), p.kernel.str(),
                           std::to_string(p.ctas) + " CTAs", std::to_string(p.shared_bytes)});
  }
}

TEST(Planner, MoreCtasThanAGridHoldsAreRefused) {
  for (const char* arch : {"sm_70", "sm_75", "sm_80", "sm_120"})
    for (const GemmProblem& p : {packed_problem(1 << 25, 1 << 25, 1, DType::f16),
                                 packed_problem(9, 9, 8, DType::f16, "nt", std::int64_t{1} << 32)})
      expect_words(plan_refusal(p, hardware(arch)),
                   {describe(canonical(p)), "CTAs", "limit", "2147483647"});
}

// The persistent family counts its tiles in 32 bits, however few CTAs walk them.
TEST(Planner, MoreTilesThanAKernelCountsAreRefusedOnHopperToo) {
  expect_words(plan_refusal(packed_problem(1 << 24, 1 << 24, 8, DType::f16), hardware("H200")),
               {"limit", "16777216x16777216x8"});
}

}  // namespace
}  // namespace fastgemm
