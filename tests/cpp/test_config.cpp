// GemmConfig and KernelConfig as values: equality, text, hash; and the traits of a problem that
// become part of a kernel.
#include <set>
#include <unordered_set>

#include "planner.hpp"
#include "plans.hpp"

namespace fastgemm {
namespace {

// One change of every field.
std::vector<GemmConfig> wishes() {
  std::vector<GemmConfig> all;
  const auto wish = [&]() -> GemmConfig& { return all.emplace_back(); };
  wish().family = Family::sm80;
  wish().strategy = "large_tiles";
  wish().block_m = 64;
  wish().block_n = 64;
  wish().block_k = 64;
  wish().warp_m = 64;
  wish().warp_n = 64;
  wish().split_k = 2;
  wish().num_stages = 2;
  wish().swizzle = true;
  wish().swizzle_bytes = 64;
  wish().raster_group = 2;
  wish().staged_stores = true;
  wish().repack_a = true;
  wish().repack_b = true;
  wish().shift_a = true;
  wish().shift_b = true;
  wish().swap_ab = true;
  wish().cluster_m = 2;
  wish().cluster_n = 2;
  wish().cluster_k = 2;
  wish().multicast = true;
  wish().tma_stores = true;
  wish().dependent_launch = true;
  wish().prefetch = true;
  wish().ping_pong = true;
  wish().persistent = true;
  return all;
}

template <class Change>
KernelConfig changed(KernelConfig k, Change change) {
  change(k);
  return k;
}

std::vector<KernelConfig> kernels_one_field_apart() {
  using K = KernelConfig;
  const K base = plan(packed_problem(512, 512, 512, DType::f16), hardware("H200")).kernel;
  return {base,
          changed(base, [](K& k) { k.family = Family::sm75; }),
          changed(base, [](K& k) { k.in = DType::bf16; }),
          changed(base, [](K& k) { k.out = DType::f32; }),
          changed(base, [](K& k) { k.a_major = Major::mn; }),
          changed(base, [](K& k) { k.b_major = Major::mn; }),
          changed(base, [](K& k) { k.block_m += 16; }),
          changed(base, [](K& k) { k.block_n += 16; }),
          changed(base, [](K& k) { k.block_k += 32; }),
          changed(base, [](K& k) { k.warp_m += 16; }),
          changed(base, [](K& k) { k.warp_n += 16; }),
          changed(base, [](K& k) { k.split_k += 1; }),
          changed(base, [](K& k) { k.num_stages += 1; }),
          changed(base, [](K& k) { k.swizzle = !k.swizzle; }),
          changed(base, [](K& k) { k.swizzle_bytes = 64; }),
          changed(base, [](K& k) { k.raster_group += 1; }),
          changed(base, [](K& k) { k.swap_ab = !k.swap_ab; }),
          changed(base, [](K& k) { k.staged_stores = !k.staged_stores; }),
          changed(base, [](K& k) { k.repack_a = !k.repack_a; }),
          changed(base, [](K& k) { k.repack_b = !k.repack_b; }),
          changed(base, [](K& k) { k.shift_a = !k.shift_a; }),
          changed(base, [](K& k) { k.shift_b = !k.shift_b; }),
          changed(base, [](K& k) { k.cluster_m += 1; }),
          changed(base, [](K& k) { k.cluster_n += 1; }),
          changed(base, [](K& k) { k.cluster_k += 1; }),
          changed(base, [](K& k) { k.prefetch = !k.prefetch; }),
          changed(base, [](K& k) { k.ping_pong = !k.ping_pong; }),
          changed(base, [](K& k) { k.persistent = !k.persistent; }),
          changed(base, [](K& k) { k.multicast = !k.multicast; }),
          changed(base, [](K& k) { k.tma_stores = !k.tma_stores; }),
          changed(base, [](K& k) { k.dependent_launch = !k.dependent_launch; }),
          changed(base, [](K& k) { k.a_copy_bytes = 8; }),
          changed(base, [](K& k) { k.b_copy_bytes = 8; }),
          changed(base, [](K& k) { k.d_vector = 1; }),
          changed(base, [](K& k) { k.has_c = !k.has_c; })};
}

TEST(GemmConfigs, EveryFieldCountsInEqualityAndText) {
  std::set<std::string> texts;
  const std::vector<GemmConfig> all = wishes();
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_NE(all[i], GemmConfig{}) << i;
    EXPECT_TRUE(texts.insert(all[i].str()).second) << all[i].str();
    for (std::size_t j = 0; j < all.size(); ++j) EXPECT_EQ(all[i] == all[j], i == j);
  }
  EXPECT_EQ(GemmConfig{}, GemmConfig{});
  EXPECT_EQ(GemmConfig{}.str(), "");
}

TEST(GemmConfigs, TextIsTheFixedFields) {
  GemmConfig c;
  c.block_m = 128, c.num_stages = 3, c.swizzle = false, c.family = Family::sm80;
  c.strategy = "square_tiles";
  EXPECT_EQ(c.str(),
            "family=sm80, block_m=128, num_stages=3, swizzle=false, strategy=square_tiles");
}

TEST(KernelConfigs, EveryFieldCountsInEqualityAndHash) {
  const std::vector<KernelConfig> all = kernels_one_field_apart();
  std::set<std::size_t> hashes;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(hashes.insert(KernelConfigHash()(all[i])).second) << all[i].str();
    for (std::size_t j = 0; j < all.size(); ++j) EXPECT_EQ(all[i] == all[j], i == j);
    EXPECT_EQ(KernelConfigHash()(all[i]), KernelConfigHash()(KernelConfig(all[i])));
  }
}

TEST(KernelConfigs, HashesOfWhatIsPlannedDoNotCollide) {
  Dice dice(7);
  std::unordered_set<KernelConfig, KernelConfigHash> kernels;
  std::set<std::size_t> hashes;
  for (int round = 0; round < 2000; ++round) {
    const HardwareSpec hw = dice.pick(targets());
    const GemmProblem p = any_problem(dice, dice.pick(dtypes_of(hw)), dice.extent(3000),
                                      dice.extent(3000), dice.extent(3000));
    for (const Candidate& c : plan(p, hw).considered) {
      kernels.insert(c.kernel);
      hashes.insert(KernelConfigHash()(c.kernel));
    }
  }
  EXPECT_GT(kernels.size(), 5000u);
  EXPECT_EQ(hashes.size(), kernels.size());
}

TEST(KernelConfigs, ThreadsFollowFromTheTiles) {
  KernelConfig k;
  k.block_m = 128, k.block_n = 64, k.block_k = 32, k.num_stages = 2, k.warp_m = 64, k.warp_n = 16;
  EXPECT_EQ(k.threads(), 2 * 4 * 32);
  k.family = Family::sm90, k.warp_n = 64;
  EXPECT_EQ(k.threads(), (2 + 1) * 128) << "two consumer warpgroups and the producer";
}

// R21: in one process, aligned and then not: the widths of accesses follow each address.
int width(std::uintptr_t byte) {
  return byte % 16 == 0 ? 16 : byte % 8 == 0 ? 8 : byte % 4 == 0 ? 4 : 2;
}

TEST(Traits, AddressPitchAndBatchStrideEachDecideTheCopyWidth) {
  for (const char* layout : {"nn", "nt", "tn", "tt"})
    for (int elements : {0, 1, 2, 3, 4, 6, 8, 12, 16}) {
      const int bytes = width(2 * static_cast<std::uintptr_t>(elements));
      for (bool of_a : {true, false})
        for (int where : {0, 1, 2}) {
          GemmProblem p = placed(64, 64, 64, layout, 3);
          MatrixView& v = of_a ? p.a : p.b;
          std::int64_t& pitch = v.row_stride == 1 ? v.col_stride : v.row_stride;
          if (where == 0) v.data = static_cast<char*>(v.data) + 2 * elements;
          if (where == 1) pitch += elements, v.batch_stride = 64 * 128;
          if (where == 2) v.batch_stride += elements;
          const ProblemTraits t = traits_of(canonical(p));
          EXPECT_EQ(of_a ? t.a_copy_bytes : t.b_copy_bytes, bytes) << dump(p);
          EXPECT_EQ(of_a ? t.b_copy_bytes : t.a_copy_bytes, 16) << dump(p);
          EXPECT_EQ(t.tma, bytes == 16) << dump(p);
          EXPECT_EQ(t.a_major, layout[0] == 'n' ? Major::k : Major::mn);
          EXPECT_EQ(t.b_major, layout[1] == 't' ? Major::k : Major::mn);
        }
    }
}

TEST(Traits, NoUnitStrideMeansSingleElements) {
  GemmProblem p = placed(64, 64, 64);
  p.a.row_stride = 256, p.a.col_stride = 2;
  const ProblemTraits t = traits_of(canonical(p));
  EXPECT_EQ(t.a_copy_bytes, 2);
  EXPECT_EQ(t.b_copy_bytes, 16);
  EXPECT_FALSE(t.tma);
}

TEST(Traits, BroadcastAndReversedOperandsAreNotForTheTma) {
  GemmProblem repeated = placed(64, 64, 64), reversed = repeated;
  repeated.a.row_stride = 0;
  reversed.b.col_stride = -64;
  EXPECT_FALSE(traits_of(canonical(repeated)).tma);
  EXPECT_FALSE(traits_of(canonical(reversed)).tma);
  EXPECT_TRUE(traits_of(canonical(placed(64, 64, 64))).tma);
}

TEST(Traits, AccessesOfTheResultAreWideOnlyWhereDAndCAllowIt) {
  const auto vector_of = [](const GemmProblem& p) { return traits_of(canonical(p)).d_vector; };
  const GemmProblem good = placed(64, 64, 64, "nt", 3, true);
  EXPECT_EQ(vector_of(good), 8);
  EXPECT_EQ(vector_of(packed_problem(64, 64, 64, DType::f16, "nt", 1, DType::f32)), 4);
  for (bool of_c : {true, false})
    for (int where : {0, 1, 2}) {
      GemmProblem p = good;
      MatrixView& v = of_c ? p.c : p.d;
      if (where == 0) v.data = static_cast<char*>(v.data) + 8;
      if (where == 1) v.row_stride += 4, v.batch_stride = 64 * 128;
      if (where == 2) v.batch_stride += 4;
      EXPECT_EQ(vector_of(p), 1) << dump(p);
      EXPECT_FALSE(traits_of(canonical(p)).tma_stores);
    }
}

TEST(Traits, EveryTraitIsPartOfTheCode) {
  const ProblemTraits base = traits_of(canonical(placed(64, 64, 64)));
  std::vector<ProblemTraits> all(11, base);
  all[1].in = DType::bf16;
  all[2].out = DType::f32;
  all[3].a_major = Major::mn;
  all[4].b_major = Major::mn;
  all[5].a_copy_bytes = 8;
  all[6].b_copy_bytes = 8;
  all[7].d_vector = 1;
  all[8].has_c = !base.has_c;
  all[9].tma = !base.tma;
  all[10].tma_stores = !base.tma_stores;
  std::set<std::uint64_t> codes;
  for (const ProblemTraits& t : all) codes.insert(t.code());
  EXPECT_EQ(codes.size(), all.size());
}

}  // namespace
}  // namespace fastgemm
