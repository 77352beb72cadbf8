// Problems: dtypes, descriptions, byte ranges, and the extents, strides and pointers that
// validate() refuses.
#include <random>

#include "problems.hpp"

namespace fastgemm {
namespace {

TEST(DTypes, NamesGoBothWays) {
  for (const DType dtype :
       {DType::f16, DType::bf16, DType::f32, DType::i8, DType::e4m3, DType::e5m2})
    EXPECT_EQ(dtype_from_name(name(dtype)), dtype);
  for (const char* text : {"fp16", "half", "F16", "Float16"})
    EXPECT_EQ(dtype_from_name(text), DType::f16) << text;
  EXPECT_EQ(dtype_from_name("bf16"), DType::bf16);
  EXPECT_EQ(dtype_from_name("fp32"), DType::f32);
  for (const char* text :
       {"", "float64", "int16", "float8", ">f2", "float", "float16 ", "complex64"})
    EXPECT_THROW(dtype_from_name(text), InvalidType) << text;
}

TEST(DTypes, OnlyTheTableIsAcceptedAndTheErrorListsIt) {
  const DType all[] = {DType::f16, DType::bf16, DType::f32,
                       DType::i8,  DType::e4m3, static_cast<DType>(9)};
  for (const DType a : all)
    for (const DType b : all)
      for (const DType c : all)
        for (const DType d : all)
          for (const bool has_c : {false, true}) {
            GemmProblem p = packed_problem(2, 2, 2, DType::f16);
            p.a.dtype = a, p.b.dtype = b, p.c.dtype = c, p.d.dtype = d, p.beta = has_c;
            const bool in = a == b && (a == DType::f16 || a == DType::bf16);
            const bool narrow = d == DType::i8 || d == DType::e4m3;
            if (in && (d == a || d == DType::f32 || narrow) && (!has_c || (c == d && !narrow))) {
              EXPECT_NO_THROW(validate(p));
            } else {
              expect_words(refusal<InvalidType>(p),
                           {"A " + std::string(name(a)), "B " + std::string(name(b)),
                            "D " + std::string(name(d)), "bfloat16, bfloat16 -> bfloat16"});
            }
          }
}

TEST(DTypes, EmptyProductsStillNeedSupportedDtypes) {
  GemmProblem p = packed_problem(0, 2, 2, DType::f16);
  p.b.dtype = DType::bf16;
  EXPECT_THROW(validate(p), InvalidType);
}

TEST(PackedProblem, LayoutsAreBlasLayouts) {
  const GemmProblem nt = packed_problem(3, 5, 7, DType::bf16, "nt", 2);
  EXPECT_EQ(nt.a.row_stride, 7);
  EXPECT_EQ(nt.a.col_stride, 1);
  EXPECT_EQ(nt.a.batch_stride, 21);
  EXPECT_EQ(nt.b.row_stride, 1);
  EXPECT_EQ(nt.b.col_stride, 7);
  EXPECT_EQ(nt.b.batch_stride, 35);
  EXPECT_EQ(nt.d.row_stride, 5);
  EXPECT_EQ(nt.d.dtype, DType::bf16);
  const GemmProblem tn = packed_problem(3, 5, 7, DType::f16, "TN", 1, DType::f32, true);
  EXPECT_EQ(tn.a.row_stride, 1);
  EXPECT_EQ(tn.a.col_stride, 3);
  EXPECT_EQ(tn.b.row_stride, 5);
  EXPECT_EQ(tn.b.col_stride, 1);
  EXPECT_EQ(tn.d.dtype, DType::f32);
  EXPECT_EQ(tn.c.dtype, DType::f32);
  EXPECT_TRUE(tn.has_c());
}

TEST(PackedProblem, BadArgumentsAreRefused) {
  for (const char* layout : {"", "n", "nnt", "xy", "n t"})
    EXPECT_THROW(packed_problem(2, 2, 2, DType::f16, layout), InvalidValue) << layout;
  EXPECT_THROW(packed_problem(-1, 2, 2, DType::f16), InvalidValue);
  EXPECT_THROW(packed_problem(2, 2, 2, DType::f16, "nt", -1), InvalidValue);
  EXPECT_THROW(packed_problem(2, 2, 2, DType::f32), InvalidType);
  EXPECT_THROW(packed_problem(2, 2, 2, DType::f16, "nt", 1, DType::bf16), InvalidType);
  EXPECT_THROW(packed_problem(std::int64_t{1} << 40, 2, std::int64_t{1} << 40, DType::f16, "nt", 2),
               InvalidValue);
}

TEST(Describe, SaysWhatMattersAndNoMore) {
  EXPECT_EQ(describe(packed_problem(4096, 4096, 4096, DType::f16)), "4096x4096x4096 nt float16");
  EXPECT_EQ(describe(packed_problem(3, 5, 7, DType::bf16, "tn", 4, DType::f32, true)),
            "3x5x7 tn bfloat16 -> float32, batch 4, plus C");
  GemmProblem p = packed_problem(8, 8, 8, DType::f16, "nn");
  p.a.row_stride = 32;
  EXPECT_EQ(describe(p), "8x8x8 nn float16, A strides (32, 1)");
  p.a.row_stride = 8;
  p.b.row_stride = 64, p.b.col_stride = 2;
  EXPECT_EQ(describe(p), "8x8x8 ns float16, B strides (64, 2)");
  EXPECT_EQ(describe(packed_problem(0, 5, 7, DType::f16)), "0x5x7 nt float16");
}

TEST(Describe, CanonicalStridesOfSingleStepsAreNotMentioned) {
  EXPECT_EQ(describe(canonical(packed_problem(1, 100, 33, DType::f16))), "1x100x33 nt float16");
  EXPECT_EQ(describe(canonical(packed_problem(1, 1, 1, DType::f16))), "1x1x1 nn float16");
}

TEST(ByteRanges, AreThoseOfTheElementsTouched) {
  std::mt19937 rng(1);
  std::uniform_int_distribution<int> stride(-9, 9), steps(0, 4);
  for (int round = 0; round < 3000; ++round) {
    const std::int64_t batch = steps(rng), rows = steps(rng), cols = steps(rng);
    const MatrixView v{address(kBase), round % 2 ? DType::f16 : DType::f32, stride(rng),
                       stride(rng), stride(rng)};
    const std::int64_t size = static_cast<std::int64_t>(size_of(v.dtype));
    std::int64_t begin = INT64_MAX, end = INT64_MIN;
    for (std::int64_t i = 0; i < batch; ++i)
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < cols; ++c) {
          const std::int64_t at =
              kBase + size * (i * v.batch_stride + r * v.row_stride + c * v.col_stride);
          begin = std::min(begin, at);
          end = std::max(end, at + size);
        }
    if (begin > end) begin = end = kBase;
    const ByteRange range = byte_range(v, batch, rows, cols);
    EXPECT_EQ(range.begin, begin);
    EXPECT_EQ(range.end, end);
  }
}

TEST(ByteRanges, OfOffsetsBeyond2To31) {
  const MatrixView v{address(kBase), DType::f16, std::int64_t{1} << 31, 1, std::int64_t{1} << 40};
  const ByteRange range = byte_range(v, 2, 2, 32);
  EXPECT_EQ(range.end - range.begin, 2 * ((std::int64_t{1} << 40) + (std::int64_t{1} << 31) + 32));
}

TEST(ByteRanges, OfSingleStepsIgnoreTheirStride) {
  const MatrixView v{address(kBase), DType::f16, INT64_MAX, 1, INT64_MIN};
  const ByteRange range = byte_range(v, 1, 1, 8);
  EXPECT_EQ(range.begin, kBase);
  EXPECT_EQ(range.end, kBase + 16);
  EXPECT_THROW(byte_range(v, 1, 3, 8), InvalidValue);
}

TEST(Validate, NegativeAndExcessiveExtentsAreNamed) {
  for (const auto member :
       {&GemmProblem::batch, &GemmProblem::m, &GemmProblem::n, &GemmProblem::k}) {
    GemmProblem p = packed_problem(2, 3, 4, DType::f16);
    p.*member = -5;
    expect_words(refusal<InvalidValue>(p), {"negative", "-5"});
    p.*member = (std::int64_t{1} << 40) + 1;
    expect_words(refusal<InvalidValue>(p), {"too large", "1099511627777", "2^40"});
    p.*member = INT64_MAX;
    refusal<InvalidValue>(p);
  }
}

TEST(Validate, ProductsOfExtentsDoNotOverflow) {
  GemmProblem p = packed_problem(2, 3, 4, DType::f16);
  p.m = p.n = std::int64_t{1} << 40;
  p.d.row_stride = std::int64_t{1} << 40;
  expect_words(refusal<InvalidValue>(p), {"2^62", "m=1099511627776"});
  p.m = p.n = p.batch = std::int64_t{1} << 22;
  refusal<InvalidValue>(p);
  EXPECT_NO_THROW(
      validate(packed_problem(std::int64_t{1} << 20, std::int64_t{1} << 20, 8, DType::f16)));
}

TEST(Validate, StridesThatLeaveTheAddressSpaceAreRefused) {
  for (const std::int64_t stride :
       {INT64_MAX, INT64_MIN, INT64_MIN + 1, std::int64_t{1} << 62, -(std::int64_t{1} << 61)}) {
    for (const auto view : {&GemmProblem::a, &GemmProblem::b, &GemmProblem::c, &GemmProblem::d})
      for (const auto member :
           {&MatrixView::row_stride, &MatrixView::col_stride, &MatrixView::batch_stride}) {
        GemmProblem p = packed_problem(2, 2, 2, DType::f16, "nt", 2, {}, true);
        p.*view.*member = stride;
        expect_words(refusal<InvalidValue>(p), {"2^62", std::to_string(stride)});
      }
  }
  GemmProblem p = placed(2, 2, 2);
  p.a.row_stride = -(std::int64_t{1} << 50);
  expect_words(refusal<InvalidValue>(p), {"A(2, 2)", "address space"});
  p.a.row_stride = std::int64_t{1} << 61;
  EXPECT_THROW(validate(p), InvalidValue);
}

TEST(Validate, OffsetsBeyond2To31AreFine) {
  GemmProblem p = placed(2, 32, 32);
  for (MatrixView* view : {&p.a, &p.d}) view->row_stride = std::int64_t{1} << 31;
  p.b.col_stride = std::int64_t{1} << 33;
  EXPECT_NO_THROW(validate(p));
  p.a.row_stride = -p.a.row_stride;
  EXPECT_NO_THROW(validate(p));
}

TEST(Validate, EmptyProductsLookAtNoStrideOrPointer) {
  for (const auto member : {&GemmProblem::batch, &GemmProblem::m, &GemmProblem::n}) {
    GemmProblem p = packed_problem(2, 3, 4, DType::f16, "nt", 2, {}, true);
    p.*member = 0;
    p.a = {address(3), DType::f16, INT64_MAX, INT64_MIN, 7};
    p.b = {nullptr, DType::f16, 0, 0, 0};
    p.c = p.d = {address(5), DType::f16, 0, 0, 0};
    EXPECT_NO_THROW(validate(p));
  }
}

TEST(Validate, WithKZeroOperandsAreNotLookedAtButDIs) {
  GemmProblem p = placed(2, 3, 0);
  p.a = {nullptr, DType::f16, INT64_MAX, INT64_MIN, 7};
  p.b = {p.d.data, DType::f16, 0, 0, 0};
  EXPECT_NO_THROW(validate(p));
  p.d.row_stride = 0;
  EXPECT_THROW(validate(p), InvalidValue);
}

TEST(Validate, PointersAreAllThereOrNone) {
  EXPECT_NO_THROW(validate(packed_problem(2, 3, 4, DType::f16, "nt", 1, {}, true)));
  for (const auto view : {&GemmProblem::a, &GemmProblem::b, &GemmProblem::c, &GemmProblem::d}) {
    GemmProblem p = placed(2, 3, 4, "nt", 1, true);
    EXPECT_NO_THROW(validate(p));
    (p.*view).data = nullptr;
    expect_words(refusal<InvalidValue>(p), {"has no memory"});
    p = packed_problem(2, 3, 4, DType::f16, "nt", 1, {}, true);
    (p.*view).data = address(kBase);
    expect_words(refusal<InvalidValue>(p), {"has no memory"});
  }
  GemmProblem p = placed(2, 3, 4);
  p.c.data = nullptr;  // not read: beta is 0
  EXPECT_NO_THROW(validate(p));
}

TEST(Validate, AddressesAreMultiplesOfTheElement) {
  for (const auto view : {&GemmProblem::a, &GemmProblem::b, &GemmProblem::c, &GemmProblem::d}) {
    GemmProblem p = placed(2, 3, 4, "nt", 1, true);
    (p.*view).data = static_cast<char*>((p.*view).data) + 1;
    expect_words(refusal<InvalidValue>(p), {"multiple of 2"});
    (p.*view).data = static_cast<char*>((p.*view).data) + 1;
    EXPECT_NO_THROW(validate(p));
  }
  GemmProblem p = placed(2, 3, 4);
  p.d.dtype = DType::f32;
  p.d.data = static_cast<char*>(p.d.data) + 2;
  expect_words(refusal<InvalidValue>(p), {"multiple of 4", "float32"});
}

TEST(Validate, OperandsMayBroadcastFlipAndShareMemory) {
  GemmProblem p = placed(4, 4, 4, "nt", 3);
  p.a.row_stride = 0, p.a.batch_stride = 0;
  p.b.col_stride = -4, p.b.row_stride = -1;
  EXPECT_NO_THROW(validate(p));
  p.b = p.a;
  EXPECT_NO_THROW(validate(p));
}

}  // namespace
}  // namespace fastgemm
