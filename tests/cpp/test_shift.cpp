// Shifted operands: what they take of shared memory, and when the planner wants them.
#include "plans.hpp"

namespace fastgemm {
namespace {

GemmProblem odd_weights(std::int64_t tokens) {
  return packed_problem(tokens, 28672, 4095, DType::bf16);
}

TEST(Shifting, WeightsOfOddDepthAreShiftedForAFewTokens) {
  for (int tokens : {1, 4, 16, 32, 64}) {
    const Plan p = plan(odd_weights(tokens), hardware("H200"));
    EXPECT_TRUE(p.kernel.shift_b && !p.kernel.repack_b) << p.str();
    EXPECT_EQ(p.kernel.b_copy_bytes, 16) << p.str();
    expect_words(p.explain(), {"shifted", "the aligned 16 bytes that hold its rows"});
  }
}

TEST(Shifting, WeightsOfOddWidthToo) {
  for (const char* card : {"H200", "A100"})
    for (int tokens : {16, 64}) {
      const Plan p = plan(packed_problem(tokens, 28671, 4096, DType::f16, "nn"), hardware(card));
      EXPECT_TRUE(p.kernel.shift_b && p.kernel.b_major == Major::mn) << p.str();
      EXPECT_FALSE(p.kernel.shift_a || p.kernel.repack_a) << p.str();
    }
}

// A warpgroup's instructions shift them once for each row of block tiles.
TEST(Shifting, ThousandsOfTokensPayForACopy) {
  for (int tokens : {128, 256, 512, 4096}) {
    const Plan p = plan(odd_weights(tokens), hardware("H200"));
    EXPECT_EQ(p.kernel.family, Family::sm90) << p.str();
    EXPECT_EQ(p.kernel.repack_b, tokens == 4096) << p.str();
    EXPECT_EQ(p.kernel.shift_b, tokens != 4096) << p.str();
  }
}

// So that each of few weights is shifted once, whole columns of tokens share K.
TEST(Shifting, WeightsOfFewTilesAreShiftedOnceForTwoHundredTokens) {
  for (const auto& [layout, n, k] : {std::tuple{"nt", 4096, 14335}, {"nn", 4095, 14336}}) {
    const Plan p = plan(packed_problem(256, n, k, DType::bf16, layout), hardware("H200"));
    EXPECT_TRUE(p.kernel.shift_b && p.kernel.block_m == 256) << p.str();
    EXPECT_GT(p.kernel.split_k * p.kernel.cluster_k, 1) << p.str();
  }
}

// A copy of it is soon made.
TEST(Shifting, TheShorterOperandMayBeCopiedBeside) {
  const KernelConfig k = plan(odd_weights(64), hardware("H200")).kernel;
  EXPECT_TRUE(k.repack_a && !k.shift_a && k.shift_b && !k.repack_b) << k.str();
}

TEST(Shifting, AlignedOperandsAreNotShiftedUnasked) {
  Dice dice(11);
  int shifted = 0;
  for (int round = 0; round < 500; ++round) {
    const HardwareSpec hw = dice.pick(targets());
    const GemmProblem p = any_problem(dice, dice.pick(dtypes_of(hw)), dice.extent(300),
                                      dice.extent(3000), dice.extent(3000));
    const Plan planned = plan(p, hw);
    const ProblemTraits traits = traits_of(planned.problem);
    for (const Candidate& c : planned.considered) {
      EXPECT_TRUE(!c.kernel.shift_a || (traits.a_copy_bytes < 16 && traits.a_runs != Runs::none))
          << c.kernel.str();
      EXPECT_TRUE(!c.kernel.shift_b || (traits.b_copy_bytes < 16 && traits.b_runs != Runs::none))
          << c.kernel.str();
      shifted += c.kernel.shift_a || c.kernel.shift_b;
    }
    if (HasFailure()) FAIL() << dump(p);
  }
  EXPECT_GT(shifted, 1000);
}

// A row has one chunk of 16 bytes more: of A along m in each of the k-tile's 64 rows, of B along k
// in each of its 128.
TEST(Shifting, RowsInSharedMemoryAreOneChunkLonger) {
  const GemmProblem p = packed_problem(256, 256, 255, DType::f16, "tt");
  GemmConfig config = only(WISH(family, Family::sm80));
  config.block_m = config.block_n = 128;
  config.block_k = 64;
  config.num_stages = 2;
  config.staged_stores = false;
  config.shift_a = config.shift_b = config.repack_a = config.repack_b = false;
  const int plain = plan(p, hardware("A100"), config).shared_bytes;
  config.shift_a = true;
  EXPECT_EQ(plan(p, hardware("A100"), config).shared_bytes, plain + 2 * 64 * 16);
  config.shift_b = true;
  EXPECT_EQ(plan(p, hardware("A100"), config).shared_bytes, plain + 2 * (64 + 128) * 16);
}

// Family sm90 has both the rows as they lie and the straightened ones, and whole 1024 bytes.
TEST(Shifting, HoppersRingHasTheRowsTwice) {
  const GemmProblem p = packed_problem(256, 256, 255, DType::f16, "nt");
  GemmConfig config = only(WISH(family, Family::sm90));
  config.block_m = 64, config.block_n = 112, config.block_k = 64, config.num_stages = 4;
  config.swap_ab = config.repack_b = config.tma_stores = config.staged_stores = false;
  config.persistent = config.ping_pong = false;
  config.cluster_m = config.cluster_n = config.cluster_k = config.split_k = 1;
  config.repack_a = config.shift_b = true;
  const int ring = 4 * (64 + 112) * 128, raw = 4 * 112 * (128 + 16), barriers = 4 * 4 * 8;
  const Plan shifted = plan(p, hardware("H200"), config);
  EXPECT_EQ(shifted.shared_bytes, ring + (raw + 1023) / 1024 * 1024 + barriers);
  EXPECT_EQ(shifted.threads, 4 * 128);
}

// The knobs name the problem's A and B, like those of repacking.
TEST(Shifting, SwappedOperandsKeepTheirNames) {
  for (bool swapped : {false, true}) {
    GemmConfig config = only(WISH(family, Family::sm90));
    config.swap_ab = swapped;
    config.repack_a = config.shift_b = true;
    config.repack_b = config.shift_a = false;
    const KernelConfig k = plan(odd_weights(16), hardware("H200"), config).kernel;
    EXPECT_TRUE(k.shift_b && !k.shift_a && k.repack_a) << k.str();
    EXPECT_EQ(k.shifts_rows_of_a(), swapped) << k.str();
    EXPECT_EQ(k.shifts_rows_of_b(), !swapped) << k.str();
  }
}

}  // namespace
}  // namespace fastgemm
