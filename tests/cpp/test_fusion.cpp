// Fused epilogues of problems: how their arrays lie, what is refused, and how they are planned.
#include "canonical.hpp"
#include "codegen.hpp"
#include "fusion.hpp"
#include "plans.hpp"
#include "tensor_map.hpp"

namespace fastgemm {
namespace {

template <class E = InvalidValue>
std::string fuse_refusal(const std::string& expression,
                         const std::vector<std::pair<std::string, FusedValue>>& values) {
  try {
    fuse(expression, values);
  } catch (const E& e) {
    return e.what();
  }
  return "not refused";
}

TEST(Fusion, BindsNamesAndRefusesWhatIsMissingOrNotUsed) {
  void* somewhere = address(kBase);
  const auto f = fuse("s * acc + b[n]", {{"b", per_column(somewhere, DType::f16)}, {"s", 2.0f}});
  EXPECT_EQ(f->arrays.size(), 1u);
  EXPECT_EQ(f->arrays[0].data, somewhere);
  EXPECT_EQ(f->numbers, std::vector<float>{2.0f});
  expect_words(fuse_refusal("acc + b[n]", {}), {"'b'", "is not given"});
  expect_words(fuse_refusal("acc + b[n]", {{"b", 1.0f}}), {"'b[n]' as an array", "a number"});
  expect_words(fuse_refusal("acc", {{"b", 1.0f}}), {"'b' is given", "does not use it"});
}

// A problem whose D is gelu(acc * scale[m] + bias[n]) + r[m, n].
GemmProblem fused(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  GemmProblem p = placed(m, n, k, "nt", batch);
  MatrixView r = p.d;
  r.data = address(std::int64_t{7} << 45);
  p.fusion = fuse("gelu(acc * scale[m] + bias[n]) + r[m, n]",
                  {{"scale", per_row(address(std::int64_t{8} << 45), DType::f32)},
                   {"bias", per_column(address(std::int64_t{9} << 45), DType::f16)},
                   {"r", r}});
  return p;
}

GemmProblem with_array(GemmProblem p, std::size_t i, const std::function<void(MatrixView&)>& edit) {
  auto fusion = std::make_shared<Fusion>(*p.fusion);
  edit(fusion->arrays[i]);
  p.fusion = fusion;
  return p;
}

TEST(Fusion, RefusesArraysThatCannotBe) {
  const GemmProblem p = fused(64, 64, 64);
  validate(p);
  expect_words(refusal<InvalidType>(with_array(p, 1, [](auto& v) { v.dtype = DType(9); })),
               {"'bias[n]'", "float16, bfloat16 or float32"});
  expect_words(refusal<InvalidValue>(with_array(p, 1, [](auto& v) { v.row_stride = 1; })),
               {"'bias[n]' has strides (1, 1)", "have to be 0"});
  expect_words(refusal<InvalidValue>(with_array(p, 0, [](auto& v) { v.col_stride = 1; })),
               {"'scale[m]' has strides (1, 1)", "have to be 0"});
  expect_words(refusal<InvalidValue>(with_array(p, 1, [&](auto& v) { v.data = p.d.data; })),
               {"D overlaps bias"});
  expect_words(refusal<InvalidValue>(with_array(p, 1, [](auto& v) { v.data = nullptr; })),
               {"bias has no memory"});
  expect_words(
      refusal<InvalidValue>(with_array(p, 0, [](auto& v) { v.data = address(kBase + 2); })),
      {"scale starts at an address that is not a multiple of 4"});
  validate(with_array(p, 2, [&](auto& v) { v = p.d; }));  // in place
  expect_words(
      refusal<InvalidValue>(with_array(p, 2, [&](auto& v) { v = p.d, v.row_stride = 32; })),
      {"D overlaps r"});
  GemmProblem both = placed(64, 64, 64, "nt", 1, true);
  both.fusion = p.fusion;
  expect_words(refusal<InvalidValue>(both), {"an epilogue and beta * C", "beta * c[m, n]"});
}

// gelu(keep(acc)), and where it is kept.
GemmProblem keeping() {
  GemmProblem p = placed(64, 64, 64);
  MatrixView keep = p.d;
  keep.data = address(std::int64_t{10} << 45);
  p.fusion =
      fuse("amax(gelu(keep(acc)))",
           {{"keep", keep}, {"amax", per_tensor(address(std::int64_t{11} << 45), DType::f32)}});
  return p;
}

TEST(Fusion, WhatIsWrittenSharesMemoryWithNothing) {
  const GemmProblem p = keeping();
  validate(p);
  for (const MatrixView* other : {&p.a, &p.b}) {
    const char* name = other == &p.a ? "keep overlaps A" : "keep overlaps B";
    expect_words(refusal<InvalidValue>(with_array(p, 0, [&](auto& v) { v.data = other->data; })),
                 {name});
  }
  expect_words(refusal<InvalidValue>(with_array(p, 0, [&](auto& v) { v = p.d; })),
               {"D overlaps keep"});
  expect_words(refusal<InvalidValue>(with_array(p, 0, [](auto& v) { v.row_stride = 1; })),
               {"keep", "two elements in one place"});
  expect_words(refusal<InvalidType>(with_array(p, 1, [](auto& v) { v.dtype = DType::f16; })),
               {"amax is float16", "one float32"});
  const void* kept = p.fusion->arrays[0].data;
  expect_words(
      refusal<InvalidValue>(with_array(p, 1, [&](auto& v) { v.data = const_cast<void*>(kept); })),
      {"keep overlaps amax"});
}

// D is half as wide as the product.
GemmProblem gated(std::int64_t m, std::int64_t n, std::int64_t k, GateOrder order,
                  const char* layout = "nt", std::int64_t batch = 1) {
  GemmProblem p = placed(m, n, k, layout, batch);
  p.fusion = fuse("silu(gate + b[gate]) * (up + b[up])",
                  {{"b", per_column(address(std::int64_t{9} << 45), DType::f16)}}, {}, order);
  p.d.row_stride = n / 2;
  if (batch > 1) p.d.batch_stride = m * n / 2;
  return p;
}

TEST(GatedFusion, TheResultHasHalfOfTheColumns) {
  const GemmProblem p = gated(64, 96, 32, GateOrder::blocked);
  validate(p);
  EXPECT_EQ(p.d_cols(), 48);
  EXPECT_EQ(transposed(p).d_rows(), 48);
  EXPECT_EQ(transposed(p).d_cols(), 64);
  GemmProblem odd = gated(64, 96, 32, GateOrder::blocked);
  odd.n = 95;
  expect_words(refusal<InvalidValue>(odd), {"one column of two", "95 columns"});
  GemmProblem narrow = p;
  narrow.d.row_stride = 47;
  EXPECT_NE(refusal<InvalidValue>(narrow).find("two elements in one place"), std::string::npos);
}

TEST(GatedFusion, ArraysOfTheProductAreFoundWhereItsColumnsLie) {
  for (const bool blocked : {false, true}) {
    const GemmProblem p = gated(64, 96, 32, blocked ? GateOrder::blocked : GateOrder::interleaved);
    const auto first = reinterpret_cast<std::intptr_t>(p.fusion->arrays[0].data);
    for (const bool swap : {false, true}) {
      const GemmProblem q = swap ? transposed(p) : p;
      const MatrixView gate = fused_array(q, 0), up = fused_array(q, 1);
      EXPECT_EQ(reinterpret_cast<std::intptr_t>(gate.data), first);
      EXPECT_EQ(reinterpret_cast<std::intptr_t>(up.data), first + 2 * (blocked ? 48 : 1));
      EXPECT_EQ(swap ? gate.row_stride : gate.col_stride, blocked ? 1 : 2);
      EXPECT_EQ(swap ? gate.col_stride : gate.row_stride, 0);
    }
  }
}

TEST(GatedFusion, TheTmaBringsGatesAndUpsTogetherOrASecondKernelDoes) {
  const HardwareSpec h100 = hardware("H100");
  for (const GateOrder order : {GateOrder::interleaved, GateOrder::blocked}) {
    const Plan large = plan(gated(4096, 4096, 4096, order), h100);
    EXPECT_TRUE(large.kernel.gate_along_n() && large.kernel.tma_stores) << large.kernel.str();
    GemmConfig swapped;
    swapped.swap_ab = true;
    const Plan few = plan(gated(16, 4096, 4096, order), h100, swapped);
    EXPECT_TRUE(few.kernel.gate_along_m() && !few.kernel.tma_stores) << few.kernel.str();
    expect_words(kernel_source(few.kernel), {"GATE = Gate::M", "PerRow<Float16> read_b_gate"});
  }
  // No eights, n contiguous, a batch, no TMA.
  const GemmProblem others[] = {gated(512, 1032, 512, GateOrder::blocked),
                                gated(512, 1024, 512, GateOrder::blocked, "nn"),
                                gated(512, 1024, 512, GateOrder::blocked, "nt", 3)};
  for (const GemmProblem& p : others) {
    const Plan apart = plan(p, h100);
    EXPECT_TRUE(apart.kernel.finishes_apart()) << apart.kernel.str();
    expect_words(kernel_source(apart.kernel), {"reduce_gated_splits<Finish>(partial, params)"});
  }
  EXPECT_TRUE(
      plan(gated(512, 1024, 512, GateOrder::blocked), hardware("A100")).kernel.finishes_apart());
}

TEST(GatedFusion, TheMapAlternatesEightGatesAndEightUps) {
  GemmConfig config;
  config.swap_ab = false, config.block_n = 64, config.block_k = 64;
  for (const bool blocked : {false, true}) {
    const GemmProblem p =
        gated(512, 1024, 256, blocked ? GateOrder::blocked : GateOrder::interleaved);
    const Plan planned = plan(p, hardware("H100"), config);
    const TensorBox box = tensor_boxes_b(planned.problem, planned.kernel).whole;
    const std::int64_t row = 2 * 256;  // bytes
    EXPECT_EQ(box.extent[1], 8);
    EXPECT_EQ(box.extent[2], 2);
    EXPECT_EQ(box.extent[3], 64);
    EXPECT_EQ(box.stride_bytes[0], blocked ? row : 2 * row);
    EXPECT_EQ(box.stride_bytes[1], blocked ? 512 * row : row);
    EXPECT_EQ(box.stride_bytes[2], blocked ? 8 * row : 16 * row);
    EXPECT_EQ(box.box[1] * box.box[2] * box.box[3] *
                  (planned.kernel.multicast ? planned.kernel.cluster_m : 1),
              64);
  }
}

TEST(Fusion, QuantisedResultsTakeOrdinaryStores) {
  for (const DType out : {DType::i8, DType::e4m3, DType::e5m2}) {
    const Plan planned =
        plan(packed_problem(512, 512, 512, DType::bf16, "nt", 1, out), hardware("H100"));
    EXPECT_FALSE(planned.kernel.tma_stores);
    EXPECT_EQ(planned.kernel.d_vector, 8);
    expect_words(kernel_source(planned.kernel),
                 {std::string("using Output = ") + device_type(out)});
  }
}

TEST(Fusion, RowsAndColumnsChangeSidesWithTheProduct) {
  GemmProblem p = fused(64, 96, 32);
  p.d.row_stride = 1, p.d.col_stride = 64;  // column-major
  const GemmProblem c = canonical(p);
  ASSERT_EQ(c.m, 96);
  ASSERT_TRUE(c.fusion_transposed);
  EXPECT_EQ(fused_array(c, 0).col_stride, 1);
  EXPECT_EQ(fused_array(c, 1).row_stride, 1);
  EXPECT_EQ(fused_kind(*c.fusion->epilogue, 0, true), ArrayKind::column);
  EXPECT_EQ(fused_kind(*c.fusion->epilogue, 1, true), ArrayKind::row);
  EXPECT_NE(fused_id(c), fused_id(transposed(c)));
  EXPECT_EQ(fused_id(c), fused_id(transposed(transposed(c))));
  validate(c);
}

TEST(Fusion, BatchesFoldOnlyWhereArraysGoOn) {
  GemmProblem p = fused(64, 96, 32, 3);
  p.b.batch_stride = 0;
  p = with_array(p, 0, [](auto& v) { v.batch_stride = 64; });
  GemmProblem folded = canonical(p);
  EXPECT_EQ(folded.batch, 1);
  EXPECT_EQ(folded.m, 192);
  EXPECT_EQ(fused_array(folded, 0).row_stride, 1);
  EXPECT_EQ(fused_array(folded, 0).batch_stride, 0);
  EXPECT_EQ(canonical(with_array(p, 1, [](auto& v) { v.batch_stride = 96; })).batch, 3);
  EXPECT_EQ(canonical(with_array(p, 0, [](auto& v) { v.batch_stride = 0; })).batch, 3);
  EXPECT_EQ(canonical(with_array(p, 2, [](auto& v) { v.batch_stride += 8; })).batch, 3);
}

TEST(Fusion, WideReadsNeedAlignmentAndWholeGroups) {
  const auto wide = [](const GemmProblem& p, std::size_t i) {
    return access_of(fused_access(p), i).wide;
  };
  const GemmProblem p = fused(64, 96, 32);
  EXPECT_TRUE(wide(p, 1) && wide(p, 2));
  EXPECT_FALSE(wide(p, 0));  // a value of a row is one
  EXPECT_FALSE(wide(with_array(p, 1, [](auto& v) { v.data = address(kBase + 8); }), 1));
  EXPECT_FALSE(wide(with_array(p, 1, [](auto& v) { v.col_stride = 2; }), 1));
  EXPECT_FALSE(wide(with_array(p, 2, [](auto& v) { v.row_stride = 97; }), 2));
  EXPECT_FALSE(wide(fused(64, 97, 32), 1));
  EXPECT_EQ(access_of(fused_access(p), 0).dtype, DType::f32);
  EXPECT_EQ(access_of(fused_access(p), 1).dtype, DType::f16);
}

TEST(Fusion, WhatOnlySwappedOperandsReadWideIsPartOfTheTraitsToo) {
  const GemmProblem p = fused(16, 4096, 4096);  // decode: a factor for each token
  const GemmProblem q = with_array(p, 0, [](auto& v) { v.data = address(kBase + 4); });
  const KernelConfig k = plan(p, hardware("H200")).kernel;
  ASSERT_TRUE(k.swap_ab);
  EXPECT_FALSE(plan(q, hardware("H200"), resolved(k)).kernel == k);
  EXPECT_FALSE(traits_of(canonical(q)) == traits_of(canonical(p)));
}

// What is found by extents and traits is right for all that have them, wherever their arrays lie.
TEST(Fusion, ProblemsOfEqualTraitsFitTheSameKernel) {
  Dice dice(14);
  int compared = 0;
  const auto moved = [&](MatrixView v) {
    v.data =
        static_cast<char*>(v.data) + size_of(v.dtype) * dice.pick<std::size_t>({0, 0, 0, 1, 2, 4});
    return v;
  };
  for (int round = 0; round < 4000 && !HasFailure(); ++round) {
    const std::int64_t m = 16 * (1 + dice.below(4)), n = 8 * (1 + dice.below(40)),
                       k = dice.one_in(3) ? 77 : 128;
    GemmProblem problems[2];
    for (GemmProblem& p : problems) {
      p = dice.one_in(2) ? fused(m, n, k) : placed(m, n, k, "nt", 1, true);
      if (p.fusion)
        for (std::size_t i = 0; i < 3; ++i) p = with_array(p, i, [&](auto& v) { v = moved(v); });
      if (p.fusion && dice.one_in(2))  // m contiguous
        p = with_array(p, 2, [&](auto& v) { v.row_stride = 1, v.col_stride = m; });
      for (MatrixView* v : {&p.a, &p.b, &p.c, &p.d}) *v = moved(*v);
      if (dice.one_in(4)) p.b.col_stride = p.b.col_stride * 3 + 1;
      p = canonical(p);
    }
    if (!(traits_of(problems[0]) == traits_of(problems[1]))) continue;
    ++compared;
    const Plan one = plan(problems[0], hardware("H200"));
    const Plan other = plan(problems[1], hardware("H200"), resolved(one.kernel));
    EXPECT_TRUE(one.kernel == other.kernel) << one.str() << " | " << other.str();
  }
  EXPECT_GT(compared, 100);
}

TEST(Fusion, PlansKeepTheTmaAndKernelsDifferOnlyWhereTheirSourceDoes) {
  const HardwareSpec h100 = hardware("H100");
  const GemmProblem p = fused(4096, 4096, 4096);
  const Plan one = plan(p, h100);
  EXPECT_TRUE(one.kernel.tma_stores);
  const Plan other_memory = plan(with_array(p, 1, [](auto& v) { v.data = address(kBase); }), h100);
  EXPECT_EQ(one.kernel, other_memory.kernel);
  EXPECT_EQ(kernel_source(one.kernel), kernel_source(other_memory.kernel));
  const Plan other_access = plan(with_array(p, 1, [](auto& v) { v.col_stride = 2; }), h100);
  EXPECT_NE(one.kernel, other_access.kernel);
  EXPECT_NE(kernel_name(one.kernel), kernel_name(other_access.kernel));
  GemmProblem plain = p;
  plain.fusion = nullptr;
  EXPECT_NE(one.kernel, plan(plain, h100).kernel);
  expect_words(kernel_source(one.kernel),
               {"// gelu(acc * scale[m] + bias[n]) + r[m, n]", "PerRow<Float32>",
                "PerColumn<Float16, true>", "PerElement<Float16, true>", "FusedParams params"});
  EXPECT_NE(describe(p).find("gelu(acc"), std::string::npos);
  EXPECT_NE(one.explain().find("gelu(acc"), std::string::npos);
}

TEST(Fusion, SwappedOperandsExchangeRowsAndColumns) {
  GemmConfig config;
  config.swap_ab = true;
  const Plan swapped = plan(fused(16, 4096, 4096), hardware("H100"), config);
  expect_words(kernel_source(swapped.kernel),
               {"PerColumn<Float32, true> read_scale", "PerRow<Float16> read_bias"});
}

// The first kernel of a split K leaves sums; the second finishes them.
TEST(Fusion, SplitsAreFinishedByTheSecondKernel) {
  GemmConfig config;
  config.split_k = 4;
  const std::string source =
      kernel_source(plan(fused(64, 64, 4096), hardware("A100"), config).kernel);
  const std::size_t second = source.find("struct Finish");
  ASSERT_NE(second, std::string::npos);
  const std::size_t first = source.find("struct Config");
  expect_words(source.substr(first, second - first),
               {"using Epilogue = NoEpilogue;", "GemmParams params"});
  expect_words(source.substr(second), {"using Epilogue = ::Epilogue;", "FusedParams params"});
}

}  // namespace
}  // namespace fastgemm
