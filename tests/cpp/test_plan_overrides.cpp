// GemmConfig in plan(): what the caller fixes is heeded to the letter, or refused in words.
#include "planner.hpp"
#include "plans.hpp"

namespace fastgemm {
namespace {

const GemmProblem& square() {
  static const GemmProblem p = packed_problem(4096, 4096, 4096, DType::f16);
  return p;
}

TEST(Overrides, EachFieldAloneIsHeeded) {
  const std::vector<std::pair<const char*, std::vector<Wish>>> cases = {
      {"sm_70",
       {WISH(family, Family::sm70), WISH(block_m, 32), WISH(block_n, 32), WISH(block_k, 64),
        WISH(warp_m, 16), WISH(warp_n, 16), WISH(num_stages, 1), WISH(swizzle, false),
        WISH(raster_group, 0), WISH(raster_group, 5), WISH(staged_stores, false),
        WISH(repack_a, true), WISH(repack_b, false)}},
      {"sm_75",
       {WISH(family, Family::sm75), WISH(family, Family::sm70), WISH(family, Family::gemv),
        WISH(block_m, 32), WISH(block_n, 48), WISH(block_k, 64), WISH(warp_m, 32), WISH(warp_n, 16),
        WISH(num_stages, 1), WISH(swizzle, false), WISH(raster_group, 3),
        WISH(staged_stores, false)}},
      {"sm_80",
       {WISH(family, Family::sm80),
        WISH(family, Family::gemv),
        WISH(family, Family::sm75),
        WISH(family, Family::sm70),
        WISH(block_m, 16),
        WISH(block_m, 96),
        WISH(block_n, 48),
        WISH(block_k, 32),
        WISH(block_k, 96),
        WISH(warp_m, 16),
        WISH(warp_n, 32),
        WISH(split_k, 1),
        WISH(split_k, 4),
        WISH(num_stages, 1),
        WISH(num_stages, 5),
        WISH(swizzle, false),
        WISH(swizzle, true),
        WISH(raster_group, 0),
        WISH(raster_group, 7),
        WISH(swap_ab, false),
        WISH(staged_stores, false),
        WISH(repack_a, true),
        WISH(repack_a, false),
        WISH(repack_b, true),
        WISH(shift_a, true),
        WISH(shift_b, true),
        WISH(cluster_m, 1),
        WISH(cluster_n, 1),
        WISH(multicast, false),
        WISH(tma_stores, false),
        WISH(dependent_launch, false)}},
      {"H200",
       {WISH(family, Family::sm90),
        WISH(family, Family::gemv),
        WISH(family, Family::sm80),
        WISH(family, Family::sm75),
        WISH(family, Family::sm70),
        WISH(block_m, 64),
        WISH(block_m, 192),
        WISH(block_m, 48),
        WISH(block_m, 8),
        WISH(block_n, 16),
        WISH(block_n, 80),
        WISH(block_n, 256),
        WISH(block_k, 64),
        WISH(block_k, 128),
        WISH(block_k, 256),
        WISH(warp_m, 64),
        WISH(warp_m, 128),
        WISH(split_k, 1),
        WISH(split_k, 2),
        WISH(split_k, 16),
        WISH(num_stages, 1),
        WISH(num_stages, 3),
        WISH(swizzle, false),
        WISH(swizzle_bytes, 128),
        WISH(swizzle_bytes, 64),
        WISH(swizzle_bytes, 32),
        WISH(swizzle_bytes, 16),
        WISH(raster_group, 0),
        WISH(raster_group, 1),
        WISH(raster_group, 1024),
        WISH(swap_ab, false),
        WISH(swap_ab, true),
        WISH(staged_stores, false),
        WISH(repack_a, true),
        WISH(repack_b, true),
        WISH(repack_b, false),
        WISH(shift_a, true),
        WISH(shift_a, false),
        WISH(shift_b, true),
        WISH(cluster_m, 2),
        WISH(cluster_m, 1),
        WISH(cluster_n, 2),
        WISH(cluster_n, 1),
        WISH(cluster_k, 1),
        WISH(cluster_k, 2),
        WISH(cluster_k, 8),
        WISH(multicast, false),
        WISH(tma_stores, false),
        WISH(tma_stores, true),
        WISH(dependent_launch, false),
        WISH(dependent_launch, true),
        WISH(prefetch, false),
        WISH(prefetch, true),
        WISH(ping_pong, false),
        WISH(ping_pong, true),
        WISH(persistent, false),
        WISH(persistent, true)}},
  };
  for (const auto& [arch, wishes] : cases)
    for (const Wish& w : wishes) {
      const GemmConfig config = only(w);
      try {
        const Plan p = plan(square(), hardware(arch), config);
        EXPECT_TRUE(w.heeded(p.kernel)) << arch << ", " << config.str() << ": " << p.str();
        EXPECT_EQ(check(p.kernel, p.hardware), "");
      } catch (const Error& error) {
        ADD_FAILURE() << arch << ", " << config.str() << ": " << error.what();
      }
    }
}

// One asks for either: of a kernel of family sm90 without a swizzle, rows are one chunk.
TEST(Overrides, NoSwizzleOfSm90IsRowsOfSixteenBytes) {
  GemmConfig by_flag = only(WISH(swizzle, false)), by_width = only(WISH(swizzle_bytes, 16));
  by_flag.family = by_width.family = Family::sm90;
  const Plan p = plan(square(), hardware("H200"), by_flag);
  EXPECT_EQ(p.kernel.swizzle_bytes, 16);
  EXPECT_EQ(plan(square(), hardware("H200"), by_width).kernel, p.kernel);
  EXPECT_EQ(plan(square(), hardware("H200"), only(WISH(family, Family::sm90))).kernel.swizzle_bytes,
            128);
  const Plan shallow = plan(square(), hardware("H200"), [] {
    GemmConfig c = only(WISH(swizzle_bytes, 64));
    c.block_k = 32;
    return c;
  }());
  EXPECT_EQ(shallow.kernel.family, Family::sm90);
}

TEST(Overrides, AStrategyIsHeededAndMayProposeNothing) {
  for (const HardwareSpec& hw : targets())
    for (const std::string& strategy : strategies()) {
      GemmConfig config;
      config.strategy = strategy;
      try {
        const Plan p = plan(square(), hw, config);
        for (const Candidate& c : p.considered) EXPECT_EQ(c.strategy, strategy);
        EXPECT_EQ(p.strategy, strategy);
      } catch (const InvalidValue& error) {
        expect_words(error.what(), {"'" + strategy + "' proposes nothing", hw.name});
      }
    }
}

TEST(Overrides, EveryStrategyIsOfUseSomewhere) {
  Dice dice(4);
  for (const std::string& strategy : strategies()) {
    bool picked = false;
    for (int round = 0; round < 3000 && !picked; ++round) {
      const std::vector<int> extents = {1, 16, 64, 100, 256, 500, 1000, 4096, 8192};
      const GemmProblem p =
          packed_problem(dice.pick(extents), dice.pick(extents), dice.pick(extents), DType::f16);
      picked = plan(p, dice.pick(targets())).strategy == strategy;
    }
    EXPECT_TRUE(picked) << strategy;
  }
}

// A plan's own kernel, asked for field by field, is that kernel again.
TEST(Overrides, AFullyFixedConfigGivesThatKernel) {
  Dice dice(5);
  for (int round = 0; round < 3000; ++round) {
    const HardwareSpec hw = dice.pick(targets());
    const GemmProblem p = any_problem(dice, dice.pick(dtypes_of(hw)), dice.extent(3000),
                                      dice.extent(3000), dice.extent(5000));
    const Plan free = plan(p, hw);
    const Candidate& other = dice.pick(free.considered);
    EXPECT_EQ(plan(p, hw, resolved(free.kernel)).kernel, free.kernel) << free.str();
    if (other.refused.empty()) {
      EXPECT_EQ(plan(p, hw, resolved(other.kernel)).kernel, other.kernel) << other.kernel.str();
    }
  }
}

TEST(Overrides, SplitsOfKAreNeverEmpty) {
  const HardwareSpec hw = hardware("A100");
  GemmConfig config;
  config.block_k = 64;
  for (int k_tiles : {1, 2, 3, 10, 16, 63})
    for (int wanted = 1; wanted <= 70; ++wanted) {
      config.split_k = wanted;
      const int got =
          plan(packed_problem(64, 64, 64 * k_tiles, DType::f16), hw, config).kernel.split_k;
      const int share = static_cast<int>(ceil_div(k_tiles, std::min(wanted, k_tiles)));
      EXPECT_EQ(got, ceil_div(k_tiles, share)) << wanted << " splits of " << k_tiles << " k-tiles";
    }
}

// Any mix of wishes, sane or not: heeded to the letter, or refused with the config in the words.
TEST(Overrides, AnyMixOfWishesIsHeededOrRefused) {
  const std::vector<Wish> wishes = {
      WISH(family, Family::sm75),
      WISH(family, Family::sm80),
      WISH(family, Family::sm90),
      WISH(family, Family::gemv),
      WISH(block_m, 2),
      WISH(block_m, 16),
      WISH(block_m, 64),
      WISH(block_m, 128),
      WISH(block_m, 192),
      WISH(block_m, 256),
      WISH(block_m, 40),
      WISH(block_n, 16),
      WISH(block_n, 64),
      WISH(block_n, 160),
      WISH(block_n, 256),
      WISH(block_n, 1000),
      WISH(block_k, 32),
      WISH(block_k, 2048),
      WISH(warp_n, 4),
      WISH(block_k, 64),
      WISH(block_k, 128),
      WISH(block_k, 0),
      WISH(warp_m, 16),
      WISH(warp_m, 64),
      WISH(warp_m, 128),
      WISH(warp_n, 16),
      WISH(warp_n, 64),
      WISH(warp_n, 256),
      WISH(num_stages, 1),
      WISH(num_stages, 2),
      WISH(num_stages, 4),
      WISH(num_stages, 12),
      WISH(num_stages, -1),
      WISH(swizzle, false),
      WISH(swizzle_bytes, 64),
      WISH(swizzle_bytes, 32),
      WISH(swizzle_bytes, 16),
      WISH(raster_group, 0),
      WISH(raster_group, 3),
      WISH(raster_group, 9999),
      WISH(swap_ab, true),
      WISH(swap_ab, false),
      WISH(repack_a, true),
      WISH(repack_a, false),
      WISH(repack_b, true),
      WISH(repack_b, false),
      WISH(shift_a, true),
      WISH(shift_a, false),
      WISH(shift_b, true),
      WISH(shift_b, false),
      WISH(staged_stores, false),
      WISH(cluster_m, 1),
      WISH(cluster_m, 2),
      WISH(cluster_n, 2),
      WISH(cluster_n, 0),
      WISH(cluster_k, 0),
      WISH(cluster_k, 2),
      WISH(cluster_k, -8),
      WISH(multicast, false),
      WISH(tma_stores, true),
      WISH(tma_stores, false),
      WISH(dependent_launch, true),
      WISH(dependent_launch, false),
      WISH(prefetch, true),
      WISH(ping_pong, true),
      WISH(ping_pong, false),
      WISH(persistent, true),
      WISH(persistent, false),
  };
  Dice dice(6);
  int heeded = 0, refused = 0;
  for (int round = 0; round < 20000 && !HasFailure(); ++round) {
    const HardwareSpec hw = dice.pick(targets());
    const GemmProblem p = any_problem(dice, dice.pick(dtypes_of(hw)), dice.extent(1000),
                                      dice.extent(1000), dice.one_in(50) ? 0 : dice.extent(1000));
    GemmConfig config;
    std::vector<Wish> made;
    for (int i = 0, count = 1 + dice.below(4); i < count; ++i) {
      made.push_back(dice.pick(wishes));
      made.back().make(config);
    }
    try {
      const Plan result = plan(p, hw, config);
      ++heeded;
      EXPECT_EQ(check(result.kernel, hw), "") << result.str();
      for (const Wish& w : made) {
        GemmConfig again = config;
        w.make(again);
        const bool overruled = again != config;  // by a later wish for the same field
        EXPECT_TRUE(overruled || w.heeded(result.kernel)) << config.str() << ": " << result.str();
      }
    } catch (const InvalidValue& error) {
      ++refused;
      expect_words(error.what(), {config.str(), describe(canonical(p)), hw.name});
    }
  }
  EXPECT_GT(heeded, 2000);
  EXPECT_GT(refused, 2000);
}

}  // namespace
}  // namespace fastgemm
