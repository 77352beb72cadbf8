// canonical() and its steps keep every product, and give kernels the form they want.
#include <functional>
#include <map>
#include <random>
#include <utility>

#include "canonical.hpp"
#include "overlap.hpp"
#include "problems.hpp"

namespace fastgemm {
namespace {

// Small integers, a function of the byte address, so that every view of the memory is defined.
double value_at(std::intptr_t byte) {
  const auto x = static_cast<std::uint64_t>(byte) * 0x9E3779B97F4A7C15u;
  return static_cast<double>(static_cast<std::int64_t>(x >> 60) - 8);
}

std::intptr_t at(const MatrixView& v, std::int64_t i, std::int64_t r, std::int64_t c) {
  return reinterpret_cast<std::intptr_t>(v.data) +
         static_cast<std::int64_t>(size_of(v.dtype)) *
             (i * v.batch_stride + r * v.row_stride + c * v.col_stride);
}

// Where the problem writes what.
std::map<std::intptr_t, double> product(const GemmProblem& p) {
  std::map<std::intptr_t, double> written;
  for (std::int64_t i = 0; i < p.batch; ++i)
    for (std::int64_t r = 0; r < p.m; ++r)
      for (std::int64_t c = 0; c < p.n; ++c) {
        double sum = 0;
        for (std::int64_t l = 0; l < p.k; ++l)
          sum += value_at(at(p.a, i, r, l)) * value_at(at(p.b, i, l, c));
        sum *= p.alpha;
        if (p.has_c()) sum += p.beta * value_at(at(p.c, i, r, c));
        EXPECT_TRUE(written.emplace(at(p.d, i, r, c), sum).second);
      }
  return written;
}

bool same(const MatrixView& x, const MatrixView& y) {
  return x.data == y.data && x.dtype == y.dtype && x.row_stride == y.row_stride &&
         x.col_stride == y.col_stride && x.batch_stride == y.batch_stride;
}

bool same(const GemmProblem& x, const GemmProblem& y) {
  return x.batch == y.batch && x.m == y.m && x.n == y.n && x.k == y.k && same(x.a, y.a) &&
         same(x.b, y.b) && same(x.c, y.c) && same(x.d, y.d) && x.alpha == y.alpha &&
         x.beta == y.beta;
}

// A random small problem; D never meets itself.
GemmProblem random_problem(std::mt19937& rng) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(rng);
  };
  GemmProblem p;
  p.batch = pick(0, 3), p.m = pick(0, 4), p.n = pick(0, 4), p.k = pick(0, 4);
  if (pick(0, 5) != 0) p.batch = std::max<std::int64_t>(p.batch, 1);
  p.alpha = static_cast<float>(pick(-2, 2));
  p.beta = static_cast<float>(pick(0, 2));
  const auto view = [&](std::int64_t where, DType dtype, std::int64_t rows, std::int64_t cols) {
    MatrixView v{address(where), dtype, pick(-6, 6), pick(-6, 6), pick(-12, 12)};
    const std::int64_t kind = pick(0, 7);
    if (kind < 6) {
      const std::int64_t pad = kind >= 4 ? pick(0, 3) : 0;
      v.row_stride = kind % 2 ? 1 : cols + pad;
      v.col_stride = kind % 2 ? rows + pad : 1;
      v.batch_stride = kind % 2 ? v.col_stride * cols : v.row_stride * rows;
      if (pick(0, 3) == 0) v.batch_stride = 0;
    }
    return v;
  };
  p.a = view(1 << 20, DType::f16, p.m, p.k);
  p.b = view(2 << 20, DType::f16, p.k, p.n);
  p.c = view(3 << 20, DType::f16, p.m, p.n);
  do {
    p.d = view(4 << 20, DType::f16, p.m, p.n);
  } while (overlaps_itself(axes_of(p.d, p.batch, p.m, p.n)) && p.batch * p.m * p.n != 0);
  if (p.has_c() && pick(0, 2) == 0) p.c = p.d;
  return p;
}

TEST(Canonical, EveryStepKeepsTheProduct) {
  std::mt19937 rng(5);
  const std::pair<const char*, std::function<GemmProblem(GemmProblem)>> steps[] = {
      {"canonical", canonical},
      {"transposed", transposed},
      {"fold", fold_batch_into_m},
      {"harmless", harmless_strides}};
  int folded = 0, turned = 0;
  for (int round = 0; round < 40000; ++round) {
    const GemmProblem p = random_problem(rng);
    ASSERT_NO_THROW(validate(p)) << dump(p);
    const auto expected = product(p);
    for (const auto& [name, step] : steps) {
      const GemmProblem q = step(p);
      ASSERT_EQ(product(q), expected) << name << "\n" << dump(p) << "\n" << dump(q);
      ASSERT_NO_THROW(validate(q)) << name << "\n" << dump(p) << "\n" << dump(q);
    }
    folded += canonical(p).batch < p.batch && p.batch > 1;
    turned += same(canonical(p).d, p.d) ? 0 : 1;
  }
  EXPECT_GT(folded, 1000);
  EXPECT_GT(turned, 1000);
}

TEST(Canonical, IsItsOwnCanonicalForm) {
  std::mt19937 rng(6);
  for (int round = 0; round < 40000; ++round) {
    const GemmProblem p = random_problem(rng), once = canonical(p);
    ASSERT_TRUE(same(canonical(once), once)) << dump(p) << "\n"
                                             << dump(once) << "\n"
                                             << dump(canonical(once));
  }
}

TEST(Canonical, RowsOfDAreContiguousWhereverDHasAUnitStride) {
  std::mt19937 rng(7);
  for (int round = 0; round < 40000; ++round) {
    const GemmProblem p = random_problem(rng), q = canonical(p);
    const bool unit = (p.m > 1 && p.d.row_stride == 1) || (p.n > 1 && p.d.col_stride == 1) ||
                      (p.batch == 1 && (p.m == 1 || p.n == 1));
    if (unit && p.batch * p.m * p.n != 0) {
      ASSERT_EQ(q.d.col_stride, 1) << dump(p) << "\n" << dump(q);
    }
    if (q.has_c() && same(p.c, p.d)) {
      ASSERT_TRUE(same(q.c, q.d)) << dump(p) << "\n" << dump(q);
    }
    if (q.batch == 1) {
      for (const MatrixView* v : {&q.a, &q.b, &q.c, &q.d}) ASSERT_EQ(v->batch_stride, 0) << dump(q);
    }
  }
}

bool aligned16(const MatrixView& v, std::int64_t rows, std::int64_t cols) {
  const std::int64_t chunk = 16 / static_cast<std::int64_t>(size_of(v.dtype));
  if (v.col_stride == 1) return v.row_stride % chunk == 0 && (rows == 1 || v.row_stride >= cols);
  return v.row_stride == 1 && v.col_stride % chunk == 0;
}

TEST(Canonical, ARowOfAWideOddArrayIsAsGoodAsAPackedOne) {
  GemmProblem p = placed(1, 64, 4096);
  p.a.row_stride = 16385;
  const GemmProblem packed = canonical(placed(1, 64, 4096));
  EXPECT_TRUE(same(canonical(p), packed));
  EXPECT_TRUE(aligned16(packed.a, 1, 4096));
}

TEST(Canonical, SingleStepsNeverCostAlignment) {
  for (const std::int64_t odd : {1, 3, 33, 4095}) {
    for (const char* layout : {"nn", "nt", "tn", "tt"}) {
      GemmProblem p = canonical(packed_problem(1, 64, odd, DType::f16, layout));
      EXPECT_TRUE(aligned16(p.a, 1, odd)) << layout << odd;
      EXPECT_TRUE(aligned16(p.d, 1, 64)) << layout << odd;
      p = canonical(packed_problem(64, 64, 1, DType::f16, layout));
      EXPECT_TRUE(aligned16(p.a, 64, 1)) << layout;
      EXPECT_TRUE(aligned16(p.b, 1, 64)) << layout;
      p = canonical(packed_problem(1, odd, 64, DType::f16, layout));
      EXPECT_TRUE(aligned16(p.d, 1, odd)) << layout << odd;
      p = canonical(packed_problem(odd, 1, 64, DType::f16, layout, 1, DType::f32, true));
      EXPECT_TRUE(aligned16(p.d, p.m, p.n)) << layout << odd;
      EXPECT_TRUE(aligned16(p.c, p.m, p.n)) << layout << odd;
      EXPECT_EQ(p.m, 1);
    }
  }
  const GemmProblem one = canonical(packed_problem(1, 1, 1, DType::f16));
  for (const MatrixView* v : {&one.a, &one.b, &one.d}) EXPECT_TRUE(aligned16(*v, 1, 1));
}

TEST(Canonical, ColumnMajorDIsTheTransposedProblem) {
  GemmProblem p = placed(6, 10, 8, "nt");
  p.d.row_stride = 1, p.d.col_stride = 6;
  const GemmProblem q = canonical(p);
  EXPECT_EQ(q.m, 10);
  EXPECT_EQ(q.n, 6);
  EXPECT_EQ(q.a.data, p.b.data);
  EXPECT_EQ(q.a.row_stride, 8);
  EXPECT_EQ(q.a.col_stride, 1);
  EXPECT_EQ(q.b.data, p.a.data);
  EXPECT_EQ(q.b.row_stride, 1);
  EXPECT_EQ(q.d.row_stride, 6);
}

TEST(Canonical, DWithNoUnitStrideStays) {
  GemmProblem p = placed(4, 4, 4);
  p.d.row_stride = 32, p.d.col_stride = 2;
  const GemmProblem q = canonical(p);
  EXPECT_EQ(q.m, 4);
  EXPECT_EQ(q.d.row_stride, 32);
  EXPECT_EQ(q.d.col_stride, 2);
}

TEST(Canonical, ABatchWithOneWeightIsOneProduct) {
  GemmProblem p = placed(7, 16, 8, "nt", 5);
  p.b.batch_stride = 0;
  GemmProblem q = canonical(p);
  EXPECT_EQ(q.batch, 1);
  EXPECT_EQ(q.m, 35);
  EXPECT_EQ(q.n, 16);
  p.m = 1;  // one row each: any batch stride is a pitch
  p.a.batch_stride = 100, p.d.batch_stride = 33;
  q = canonical(p);
  EXPECT_EQ(q.m, 5);
  EXPECT_EQ(q.a.row_stride, 100);
  EXPECT_EQ(q.d.row_stride, 33);
}

TEST(Canonical, ABatchWithOneAAndAdjacentColumnsOfDIsOneProduct) {
  GemmProblem p = placed(7, 16, 8, "nt", 5);
  p.a.batch_stride = 0;
  p.d.row_stride = 80, p.d.batch_stride = 16;
  const GemmProblem q = canonical(p);
  EXPECT_EQ(q.batch, 1);
  EXPECT_EQ(q.m, 7);
  EXPECT_EQ(q.n, 80);
  EXPECT_EQ(q.b.col_stride, 8);
}

TEST(Canonical, BatchesThatDoNotContinueTheirRowsStayBatches) {
  const auto batch_of = [](auto change) {
    GemmProblem p = placed(7, 16, 8, "nt", 5, true);
    p.b.batch_stride = 0;
    change(p);
    return canonical(p).batch;
  };
  EXPECT_EQ(batch_of([](GemmProblem&) {}), 1);
  EXPECT_EQ(batch_of([](GemmProblem& p) { p.b.batch_stride = 1; }), 5);
  EXPECT_EQ(batch_of([](GemmProblem& p) { p.a.batch_stride += 8; }), 5);
  EXPECT_EQ(batch_of([](GemmProblem& p) { p.d.batch_stride += 16; }), 5);
  EXPECT_EQ(batch_of([](GemmProblem& p) { p.c.batch_stride = 0; }), 5);
  EXPECT_EQ(batch_of([](GemmProblem& p) { p.c.batch_stride = 0, p.beta = 0; }), 1);
}

TEST(Canonical, FoldingDoesNotOverflow) {
  GemmProblem p = packed_problem(4, 2, 2, DType::f16, "nt", 4);
  p.b.batch_stride = 0;
  p.a.row_stride = std::int64_t{1} << 62, p.a.batch_stride = 0;  // 4 * 2^62 is 0 in 64 bits
  EXPECT_EQ(fold_batch_into_m(p).batch, 4);
  p = packed_problem(std::int64_t{1} << 30, 1, 1, DType::f16, "nt", std::int64_t{1} << 20);
  p.b.batch_stride = 0;
  EXPECT_EQ(fold_batch_into_m(p).m, std::int64_t{1} << 30);
}

TEST(Canonical, WhatIsNotReadDoesNotChangeTheForm) {
  GemmProblem p = placed(8, 8, 0), q = p;
  p.a = {address(3), DType::f16, 5, 6, 7};
  EXPECT_TRUE(same(canonical(p), canonical(q)));
  p = placed(8, 8, 8), q = p;
  p.c = {address(3), DType::f32, 5, 6, 7};
  EXPECT_TRUE(same(canonical(p), canonical(q)));
  p = placed(0, 8, 8), q = p;
  p.b.row_stride = 99, p.d.col_stride = -4;
  EXPECT_TRUE(same(canonical(p), canonical(q)));
}

}  // namespace
}  // namespace fastgemm
