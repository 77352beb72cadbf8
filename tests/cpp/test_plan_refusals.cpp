// What plan() refuses: in words with need, limit and config, whatever it was that was asked for.
#include "planner.hpp"
#include "plans.hpp"

namespace fastgemm {
namespace {

const GemmProblem& square() {
  static const GemmProblem p = packed_problem(4096, 4096, 4096, DType::f16);
  return p;
}

// R38: need, limit and config are in the words, and all that was considered had a reason.
TEST(Refusals, ARingThatDoesNotFitIsRefusedWithNeedAndLimit) {
  for (const auto& [arch, kib] : std::vector<std::pair<const char*, int>>{{"sm_80", 163},
                                                                          {"sm_86", 99},
                                                                          {"sm_87", 163},
                                                                          {"sm_89", 99},
                                                                          {"sm_90", 227},
                                                                          {"sm_100", 227},
                                                                          {"sm_120", 99}}) {
    GemmConfig config;
    config.block_m = config.block_n = 128;
    config.block_k = 64;
    config.num_stages = 9;
    const std::string text = plan_refusal(square(), hardware(arch), config);
    expect_words(text, {"needs ", "shared memory", "the limit is " + std::to_string(kib * 1024),
                        "4096x4096x4096 nt float16", arch, "128x128x64", "9 stages", config.str(),
                        "fewer num_stages"});
    const std::size_t at = text.find("needs ");
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_GE(std::stoi(text.substr(at + 6)), 9 * 32 * 1024) << text;
    EXPECT_LE(std::stoi(text.substr(at + 6)), 9 * 32 * 1024 + 40 * 1024) << text;
  }
}

TEST(Refusals, TwoStagesThatTuringCannotHoldAreRefused) {
  GemmConfig config;
  config.block_m = config.block_n = 128;
  config.block_k = 128;
  config.num_stages = 2;
  for (const auto& [arch, kib] :
       std::vector<std::pair<const char*, int>>{{"sm_75", 64}, {"sm_70", 96}})
    expect_words(plan_refusal(square(), hardware(arch), config),
                 {"needs 131072 bytes of shared memory", "limit is " + std::to_string(kib * 1024),
                  config.str(), arch});
}

TEST(Refusals, WhatNoKernelCanDoIsRefusedByName) {
  struct Case {
    const char* arch;
    std::vector<Wish> wishes;
    std::vector<std::string> words;
  };
  const std::vector<Case> cases = {
      {"sm_80", {WISH(block_m, 0)}, {"block_m", "multiples of 16"}},
      {"sm_80", {WISH(block_m, -128)}, {"block_m", "multiples of 16"}},
      {"sm_80", {WISH(block_n, 24)}, {"block_n", "multiples of 16"}},
      {"sm_80", {WISH(block_m, 1 << 20)}, {"block_m", "512"}},
      {"sm_80", {WISH(block_k, 16)}, {"block_k", "multiple of 32"}},
      {"sm_80", {WISH(block_k, 512)}, {"block_k", "256"}},
      {"sm_80", {WISH(block_m, 64), WISH(warp_m, 48)}, {"warp_m", "divide block_m"}},
      {"sm_80", {WISH(warp_n, 0)}, {"warp_n", "multiples of 16"}},
      {"sm_80",
       {WISH(block_m, 256), WISH(block_n, 128), WISH(warp_m, 16), WISH(warp_n, 16)},
       {"4096 threads", "limit is 1024"}},
      {"sm_80",
       {WISH(block_m, 256), WISH(block_n, 256), WISH(warp_m, 256), WISH(warp_n, 256)},
       {"registers", "the limit is 255", "spill"}},
      {"sm_80", {WISH(num_stages, 0)}, {"num_stages", "1..32"}},
      {"sm_80", {WISH(num_stages, 33)}, {"num_stages", "1..32"}},
      {"sm_75", {WISH(num_stages, 3)}, {"sm75", "num_stages is 1 or 2"}},
      {"sm_80", {WISH(raster_group, -1)}, {"raster_group", "0..1024"}},
      {"sm_80", {WISH(raster_group, 1025)}, {"raster_group", "0..1024"}},
      {"sm_80", {WISH(split_k, 0)}, {"split_k", "1..1024"}},
      {"sm_80", {WISH(split_k, -3)}, {"split_k", "1..1024"}},
      {"sm_80", {WISH(family, Family::sm90)}, {"sm90", "wgmma", "9.0"}},
      {"sm_100", {WISH(family, Family::sm90)}, {"sm90", "wgmma", "9.0"}},
      {"sm_75", {WISH(family, Family::sm80)}, {"sm80", "cp.async", "8.0"}},
      {"sm_70", {WISH(family, Family::sm75)}, {"sm75", "ldmatrix", "7.5"}},
      {"sm_80", {WISH(cluster_m, 2)}, {"clusters", "sm90"}},
      {"sm_80", {WISH(swap_ab, true)}, {"swapped operands", "sm90"}},
      {"sm_80", {WISH(tma_stores, true)}, {"TMA stores", "sm90"}},
      {"sm_80", {WISH(dependent_launch, true)}, {"dependent launch", "sm90"}},
      {"H200", {WISH(block_m, 0)}, {"block_m"}},
      {"H200", {WISH(block_m, -64)}, {"block_m"}},
      {"sm_80", {WISH(cluster_m, -1), WISH(cluster_n, -1)}, {"clusters"}},
      {"H200", {WISH(cluster_m, -1), WISH(cluster_n, -1)}, {"clusters"}},
      {"sm_80", {WISH(multicast, true)}, {"multicast", "sm90"}},
      {"H200", {WISH(multicast, true), WISH(cluster_m, 1), WISH(cluster_n, 1)}, {"multicast"}},
      {"H200", {WISH(cluster_m, 4)}, {"clusters are 1x1, 2x1 or 1x2"}},
      {"H200", {WISH(cluster_m, 2), WISH(cluster_n, 2)}, {"clusters are 1x1, 2x1 or 1x2"}},
      {"sm_80", {WISH(cluster_k, 2)}, {"clusters", "sm90"}},
      {"sm_80", {WISH(prefetch, true)}, {"dependent launch", "sm90"}},
      {"sm_80", {WISH(ping_pong, true)}, {"ping-pong", "sm90"}},
      {"sm_80", {WISH(persistent, true)}, {"persistent CTAs", "sm90"}},
      {"H200", {WISH(ping_pong, true), WISH(persistent, false)}, {"ping_pong needs persistent"}},
      {"H200",
       {WISH(family, Family::gemv), WISH(cluster_k, 2)},
       {"gemv", "no swizzle", "clusters"}},
      {"H200", {WISH(family, Family::gemv), WISH(prefetch, true)}, {"gemv", "prefetch"}},
      {"H200", {WISH(family, Family::gemv), WISH(ping_pong, true)}, {"gemv", "ping-pong"}},
      {"H200",
       {WISH(ping_pong, true), WISH(block_m, 128), WISH(warp_m, 64)},
       {"warp_m equal to block_m"}},
      {"H200", {WISH(ping_pong, true), WISH(cluster_k, 2)}, {"ping_pong needs cluster_k 1"}},
      {"H200",
       {WISH(family, Family::sm90), WISH(block_m, 128), WISH(block_n, 256), WISH(cluster_k, 4),
        WISH(split_k, 2), WISH(persistent, true)},
       {"registers", "it would spill"}},
      {"H200", {WISH(cluster_k, 3)}, {"cluster_k has to be 1, 2, 4 or 8"}},
      {"H200",
       {WISH(cluster_n, 2), WISH(block_m, 40), WISH(block_k, 64), WISH(swap_ab, false)},
       {"multicast shares A out in 8s of its rows", "block_m a multiple of 16"}},
      {"H200",
       {WISH(block_m, 192), WISH(block_n, 208), WISH(block_k, 64)},
       {"four warpgroups", "block_n up to 192"}},
      {"H200", {WISH(cluster_k, 2), WISH(cluster_m, 2)}, {"needs cluster_m and cluster_n 1"}},
      {"H200", {WISH(cluster_k, 4), WISH(block_n, 80)}, {"a multiple of 16 * cluster_k"}},
      {"H200", {WISH(prefetch, true), WISH(dependent_launch, false)}, {"needs dependent_launch"}},
      {"H200", {WISH(block_m, 52)}, {"multiple of 8"}},
      {"H200",
       {WISH(family, Family::sm90), WISH(swizzle, false), WISH(swizzle_bytes, 64)},
       {"swizzle and swizzle_bytes disagree"}},
      {"H200",
       {WISH(family, Family::sm90), WISH(swizzle, true), WISH(swizzle_bytes, 16)},
       {"swizzle and swizzle_bytes disagree"}},
      {"H200", {WISH(family, Family::sm90), WISH(swizzle_bytes, 8)}, {"128, 64 or 32"}},
      {"H200",
       {WISH(family, Family::sm80), WISH(swizzle_bytes, 64)},
       {"swizzle_bytes is a knob of family sm90", "sm80"}},
      {"sm_80", {WISH(swizzle_bytes, 32)}, {"swizzle_bytes is a knob of family sm90"}},
      {"H200",
       {WISH(family, Family::sm90), WISH(swizzle_bytes, 64), WISH(block_k, 32), WISH(block_m, 24)},
       {"block_m a multiple of 16"}},
      {"H200",
       {WISH(family, Family::sm90), WISH(swizzle_bytes, 64), WISH(block_k, 16)},
       {"32 with swizzle_bytes of 64 or less"}},
      {"H200",
       {WISH(family, Family::sm90), WISH(block_k, 32)},
       {"block_k 64, 128 or 256", "swizzle_bytes 64"}},
      {"H200", {WISH(family, Family::sm90), WISH(block_m, 320)}, {"256 at most"}},
      {"H200", {WISH(family, Family::sm90), WISH(block_n, 272)}, {"block_n", "up to 256"}},
      {"H200", {WISH(family, Family::sm90), WISH(warp_n, 32)}, {"warp_n equal to it"}},
      {"H200", {WISH(family, Family::sm90), WISH(warp_m, 96)}, {"warp_m 128 or a multiple of 8"}},
      {"H200",
       {WISH(tma_stores, true), WISH(staged_stores, false)},
       {"tma_stores needs staged_stores"}},
      {"H200", {WISH(tma_stores, true), WISH(split_k, 4)}, {"split_k", "tma_stores has to be off"}},
  };
  for (const Case& c : cases) {
    GemmConfig config;
    for (const Wish& w : c.wishes) w.make(config);
    std::vector<std::string> words = c.words;
    words.insert(words.end(), {"no kernel for 4096x4096x4096 nt float16", "with config",
                               config.str(), hardware(c.arch).name});
    expect_words(plan_refusal(square(), hardware(c.arch), config), words);
  }
}

TEST(Refusals, WhatTheTmaCannotDoForThisProductIsRefused) {
  const HardwareSpec hw = hardware("H200");
  GemmProblem shifted = placed(512, 512, 512), pitched = shifted, shifted_d = shifted;
  shifted.b.data = address(std::int64_t{3} << 45 | 2);
  pitched.a.row_stride = 516;
  shifted_d.d.data = address((std::int64_t{1} << 47) + 8);
  const GemmConfig sm90 = only(WISH(family, Family::sm90));
  GemmConfig in_place = sm90, swapped = only(WISH(swap_ab, true));
  in_place.repack_a = in_place.repack_b = swapped.repack_a = false;
  in_place.shift_a = in_place.shift_b = swapped.shift_a = false;
  for (const GemmProblem& p : {shifted, pitched})
    expect_words(plan_refusal(p, hw, in_place), {"16-byte aligned", "A and B", "family=sm90"});
  expect_words(plan_refusal(placed(512, 512, 0), hw, sm90), {"k = 0", "family=sm90"});
  expect_words(plan_refusal(pitched, hw, swapped),
               {"sm90 is left out", "16-byte aligned", "swap_ab=true", "repack_a=false"});

  const GemmConfig stores = only(WISH(tma_stores, true));
  expect_words(
      plan_refusal(packed_problem(512, 512, 512, DType::f16, "nt", 1, DType::f32), hw, stores),
      {"16-bit D", "tma_stores=true"});
  expect_words(plan_refusal(placed(512, 512, 512, "nt", 1, true), hw, stores),
               {"beta 0", "tma_stores=true"});
  expect_words(plan_refusal(shifted_d, hw, stores), {"16-byte aligned", "D", "tma_stores=true"});

  const GemmProblem ragged = packed_problem(512, 512, 520, DType::f16);
  GemmConfig deep = sm90;
  deep.block_k = 128;
  expect_words(plan_refusal(ragged, hw, deep), {"multiple of 64", deep.str()});
  GemmConfig narrow = sm90;
  narrow.swizzle_bytes = 64;  // 520 is no multiple of the 32 elements of a row
  expect_words(plan_refusal(ragged, hw, narrow), {"multiple of 32", "swizzle_bytes 64"});
  narrow.swizzle_bytes = 16;
  EXPECT_EQ(plan(ragged, hw, narrow).kernel.swizzle_bytes, 16);
}

TEST(Refusals, WhatGemvCannotDoIsRefusedByName) {
  const GemmProblem k_major = packed_problem(2, 4096, 4096, DType::f16, "nt"),
                    n_major = packed_problem(2, 4096, 4096, DType::f16, "nn");
  struct Case {
    const GemmProblem& problem;
    Wish wish;
    std::vector<std::string> words;
  };
  const std::vector<Case> cases = {
      {k_major, WISH(swizzle, true), {"no swizzle"}},
      {k_major, WISH(swizzle_bytes, 64), {"swizzle_bytes is a knob of family sm90"}},
      {k_major, WISH(staged_stores, true), {"staged"}},
      {k_major, WISH(raster_group, 4), {"raster groups"}},
      {k_major, WISH(cluster_n, 2), {"clusters"}},
      {k_major, WISH(multicast, true), {"multicast"}},
      {k_major, WISH(tma_stores, true), {"TMA stores"}},
      {k_major, WISH(repack_b, true), {"repacking"}},
      {k_major, WISH(dependent_launch, true), {"9.0", "sm_80"}},
      {k_major, WISH(block_m, 9), {"block_m", "1 to 8", "16, 24 .. 64"}},
      {k_major, WISH(block_m, 0), {"block_m", "1 to 8"}},
      {k_major, WISH(block_m, 72), {"block_m", ".. 64"}},
      {n_major, WISH(block_m, 16), {"block_m", "k is contiguous"}},
      {k_major, WISH(block_m, 8), {"warp_n 16", "mma tile"}},
      {k_major, WISH(warp_m, 4), {"warp_m equal"}},
      {k_major, WISH(warp_n, 16), {"warp_n 1, 2, 4 or 8"}},
      {k_major, WISH(warp_n, 0), {"warp_n 1, 2, 4 or 8"}},
      {n_major, WISH(warp_n, 4), {"warp_n 8, 16 .. 256"}},
      {n_major, WISH(warp_n, 48), {"warp_n 8, 16 .. 256"}},
      {k_major, WISH(num_stages, 0), {"num_stages 1 to 8"}},
      {k_major, WISH(block_n, 7), {"block_n a multiple of warp_n"}},
      {k_major, WISH(block_n, 1024), {"threads", "1024", "block_n"}},
      {k_major, WISH(block_k, 768), {"block_k a multiple of the 512", "one step"}},
      {k_major, WISH(block_k, -512), {"block_k a multiple"}},
  };
  for (const Case& c : cases) {
    GemmConfig config = only(c.wish);
    config.family = Family::gemv;
    if (!config.num_stages) config.num_stages = 2;
    if (!config.warp_n) config.warp_n = c.problem.b.row_stride == 1 ? 2 : 32;
    std::vector<std::string> words = c.words;
    words.push_back(config.str());
    expect_words(plan_refusal(c.problem, hardware("sm_80"), config), words);
  }
  GemmConfig many = only(WISH(block_m, 16));
  many.family = Family::gemv;
  expect_words(plan_refusal(k_major, hardware("T4"), many), {"mma.m16n8k16", "8.0", "sm_75"});
  expect_words(plan_refusal(packed_problem(1, 1, (std::int64_t{1} << 30) + 8, DType::f16),
                            hardware("H200"), only(WISH(family, Family::gemv))),
               {"k to 2^30"});
}

TEST(Refusals, NothingToRepackIsRefused) {
  for (const char* arch : {"H200", "A100", "T4"})
    for (const Wish& w : {WISH(repack_a, true), WISH(repack_b, true)})
      expect_words(plan_refusal(placed(512, 512, 0), hardware(arch), only(w)),
                   {"nothing to repack (k = 0)", only(w).str()});
}

TEST(Refusals, WhatCannotBeShiftedIsRefused) {
  const GemmProblem odd = packed_problem(64, 512, 511, DType::f16);
  GemmProblem apart = odd;
  apart.b.row_stride = 3, apart.b.col_stride = 3 * 511;
  const GemmProblem few = packed_problem(2, 512, 511, DType::f16);
  for (const Wish& w : {WISH(shift_a, true), WISH(shift_b, true)}) {
    expect_words(plan_refusal(odd, hardware("T4"), only(w)),
                 {"families sm80 and sm90", "sm75", only(w).str()});
    GemmConfig config = only(w);
    config.family = Family::gemv;
    expect_words(plan_refusal(few, hardware("H200"), config),
                 {"families sm80 and sm90", "gemv", config.str()});
    config.family = Family::sm90;
    const auto refused_with = [&](auto set, const char* word) {
      GemmConfig more = config;
      set(more);
      more.swap_ab = false;
      expect_words(plan_refusal(odd, hardware("H200"), more), {word, more.str()});
    };
    refused_with([](GemmConfig& c) { c.cluster_m = 2; }, "cluster_m and cluster_n 1");
    refused_with([](GemmConfig& c) { c.num_stages = 1; }, "num_stages 2 or more");
    refused_with([](GemmConfig& c) { c.block_n = 256; }, "block_n up to 192");
  }
  GemmConfig prefetching = only(WISH(shift_a, true));
  prefetching.family = Family::sm90;
  prefetching.prefetch = true;
  prefetching.swap_ab = false;
  expect_words(plan_refusal(odd, hardware("H200"), prefetching), {"prefetch is the TMA's"});
  GemmConfig twice = only(WISH(shift_a, true));
  twice.repack_a = true;
  expect_words(plan_refusal(odd, hardware("A100"), twice), {"repacked or shifted, not both"});
  expect_words(plan_refusal(apart, hardware("A100"), only(WISH(shift_b, true))),
               {"unit stride", "shift_b=true"});
  EXPECT_TRUE(plan(apart, hardware("A100"), only(WISH(shift_a, true))).kernel.shift_a);
}

TEST(Refusals, UnknownStrategiesAndFamiliesAreRefusedWithWhatThereIs) {
  GemmConfig config;
  config.strategy = "bananas";
  std::vector<std::string> words = strategies();
  words.push_back("unknown tiling strategy 'bananas'");
  expect_words(plan_refusal(square(), hardware("A100"), config), words);
  for (const char* family : {"", "sm60", "SM80", "sm80 "}) try {
      family_from_name(family);
      ADD_FAILURE() << family;
    } catch (const InvalidValue& error) {
      expect_words(error.what(),
                   {"'" + std::string(family) + "'", "sm70", "sm75", "sm80", "sm90", "gemv"});
    }
  for (Family family : {Family::sm70, Family::sm75, Family::sm80, Family::sm90, Family::gemv})
    EXPECT_EQ(family_from_name(name(family)), family);
}

TEST(Refusals, Bfloat16IsATypeErrorBeforeAmpere) {
  const GemmProblem p = packed_problem(256, 256, 256, DType::bf16);
  for (const char* arch : {"sm_70", "sm_75", "T4", "V100"})
    expect_words(plan_refusal<InvalidType>(p, hardware(arch)), {"bfloat16", "8.0", "float16"});
  for (Family family : {Family::sm70, Family::sm75})
    expect_words(plan_refusal(p, hardware("A100"), only(WISH(family, family))),
                 {"float16 only", "sm80"});
}

}  // namespace
}  // namespace fastgemm
