// Memory that D shares with itself or with its operands: validate() against brute force.
#include <random>
#include <set>

#include "overlap.hpp"
#include "problems.hpp"

namespace fastgemm {
namespace {

std::multiset<std::int64_t> elements(const MatrixView& v, std::int64_t batch, std::int64_t rows,
                                     std::int64_t cols) {
  std::multiset<std::int64_t> out;
  for (std::int64_t i = 0; i < batch; ++i)
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < cols; ++c)
        out.insert(i * v.batch_stride + r * v.row_stride + c * v.col_stride);
  return out;
}

bool has_twins(const std::multiset<std::int64_t>& all) {
  return std::set<std::int64_t>(all.begin(), all.end()).size() != all.size();
}

TEST(SelfOverlap, AgreesWithBruteForce) {
  std::mt19937 rng(2);
  int overlapping = 0, clean = 0;
  for (int round = 0; round < 60000; ++round) {
    const int reach = 1 << (1 + round % 6);
    std::uniform_int_distribution<int> stride(-reach, reach), steps(1, 1 + round % 7);
    const MatrixView d{nullptr, DType::f16, stride(rng), stride(rng), stride(rng)};
    const std::int64_t batch = steps(rng), m = steps(rng), n = steps(rng);
    const bool expected = has_twins(elements(d, batch, m, n));
    bool undecided = false;
    ASSERT_EQ(overlaps_itself(axes_of(d, batch, m, n), &undecided), expected)
        << d.batch_stride << "," << d.row_stride << "," << d.col_stride << " of " << batch << ","
        << m << "," << n;
    ASSERT_FALSE(undecided);
    ++(expected ? overlapping : clean);
  }
  EXPECT_GT(overlapping, 5000);
  EXPECT_GT(clean, 5000);
}

TEST(SelfOverlap, InterleavedAxesOfLargeStridesAreDecidedExactly) {
  const auto twins = [](std::int64_t bs, std::int64_t rs, std::int64_t cs, std::int64_t batch,
                        std::int64_t m, std::int64_t n) {
    return overlaps_itself({{{bs, batch}, {rs, m}, {cs, n}}});
  };
  const std::int64_t big = std::int64_t{1} << 50;
  EXPECT_FALSE(twins(0, 1, 1000, 1, 1000, 1000000));  // column-major
  EXPECT_TRUE(twins(0, 1, 999, 1, 1000, 1000000));
  EXPECT_FALSE(twins(0, 3, 2, 1, 2, 3));  // 3i = 2j only at i = 2
  EXPECT_TRUE(twins(0, 3, 2, 1, 3, 4));
  EXPECT_FALSE(twins(big + 1, big, 1, 3, 3, 1));
  EXPECT_TRUE(twins(big + 1, big, 1, 3, 3, 2));
  EXPECT_FALSE(twins(7, 7 * 64 + 1, big, 60, 60, 60));
  EXPECT_TRUE(twins(6, 10, 15, 6, 4, 3));
}

TEST(SelfOverlap, IsRefusedWithItsStrides) {
  GemmProblem p = placed(4, 8, 2);
  p.d.row_stride = 7;
  expect_words(refusal<InvalidValue>(p), {"D(4, 8)", "(7, 1)", "two elements in one place"});
  p.d.row_stride = 0;
  refusal<InvalidValue>(p);
  p.m = 1;
  EXPECT_NO_THROW(validate(p));
  p = placed(4, 8, 2, "nt", 3);
  p.d.batch_stride = 0;
  expect_words(refusal<InvalidValue>(p), {"D(3, 4, 8)", "(0, 8, 1)"});
  p.d.batch_stride = 8, p.d.row_stride = 24;  // batches interleaved row by row
  EXPECT_NO_THROW(validate(p));
}

std::set<std::int64_t> bytes(const MatrixView& v, std::int64_t batch, std::int64_t rows,
                             std::int64_t cols) {
  std::set<std::int64_t> out;
  const std::int64_t size = static_cast<std::int64_t>(size_of(v.dtype));
  for (const std::int64_t element : elements(v, batch, rows, cols))
    for (std::int64_t byte = 0; byte < size; ++byte)
      out.insert(reinterpret_cast<std::intptr_t>(v.data) + element * size + byte);
  return out;
}

bool meet(const std::set<std::int64_t>& a, const std::set<std::int64_t>& b) {
  for (const std::int64_t x : a)
    if (b.count(x) != 0) return true;
  return false;
}

TEST(Overlap, NoSharedByteIsEverAccepted) {
  std::mt19937 rng(3);
  int accepted = 0, refused = 0;
  for (int round = 0; round < 60000; ++round) {
    const int reach = 1 << (1 + round % 6);
    std::uniform_int_distribution<int> stride(-reach, reach), steps(1, 5), offset(-64, 64);
    GemmProblem p;
    p.batch = steps(rng), p.m = steps(rng), p.n = steps(rng), p.k = steps(rng);
    p.a = {address(kBase), DType::f16, stride(rng), stride(rng), stride(rng)};
    p.b = {address(1 << 30), DType::f16, 1, 64, 4096};
    p.d = {address(kBase + 4 * offset(rng)), round % 3 ? DType::f16 : DType::f32, stride(rng),
           stride(rng), stride(rng)};
    if (has_twins(elements(p.d, p.batch, p.m, p.n))) continue;
    const bool shared = meet(bytes(p.a, p.batch, p.m, p.k), bytes(p.d, p.batch, p.m, p.n));
    try {
      validate(p);
      ASSERT_FALSE(shared) << dump(p);
      ++accepted;
    } catch (const InvalidValue&) {
      ++refused;
    }
  }
  EXPECT_GT(accepted, 5000);
  EXPECT_GT(refused, 5000);
}

TEST(Overlap, InterleavedSubmatricesOfOneBufferAreDecidedExactly) {
  // Windows of a (batch, rows, pitch) buffer, each with a step of its own in every direction.
  std::mt19937 rng(4);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(rng);
  };
  int disjoint = 0, shared_cols = 0;
  for (int round = 0; round < 40000; ++round) {
    const std::int64_t pitch = pick(4, 24), rows = pick(1, 6), batch = pick(1, 3);
    const std::int64_t batch_stride = pitch * rows;
    GemmProblem p;
    p.batch = batch, p.m = pick(1, rows), p.n = pick(1, pitch), p.k = pick(1, pitch);
    const std::int64_t a_col = pick(0, pitch - p.k), d_col = pick(0, pitch - p.n);
    const std::int64_t row = pick(0, rows - p.m);
    p.a = {address(kBase + 2 * (row * pitch + a_col)), DType::f16, pitch, 1, batch_stride};
    p.b = {address(1 << 30), DType::f16, 1, 64, 4096};
    p.d = {address(kBase + 2 * (row * pitch + d_col)), DType::f16, pitch, 1, batch_stride};
    if (round % 2 != 0) {  // D backwards
      p.d.data = static_cast<char*>(p.d.data) + 2 * (p.m - 1) * pitch;
      p.d.row_stride = -pitch;
    }
    const bool shared = meet(bytes(p.a, p.batch, p.m, p.k), bytes(p.d, p.batch, p.m, p.n));
    if (shared) {
      expect_words(refusal<InvalidValue>(p), {"D overlaps A", "[0x", "memory of its own"});
      ++shared_cols;
    } else {
      ASSERT_NO_THROW(validate(p)) << dump(p);
      ++disjoint;
    }
  }
  EXPECT_GT(disjoint, 2000);
  EXPECT_GT(shared_cols, 2000);
}

TEST(Overlap, EveryWayToShareABufferIsSeen) {
  GemmProblem p = placed(8, 16, 16);
  const auto d_at = [&](std::int64_t element) {
    p.d.data = static_cast<char*>(p.a.data) + 2 * element;
  };
  p.a.row_stride = p.d.row_stride = 64;
  d_at(16);  // columns 16..31 beside columns 0..15
  EXPECT_NO_THROW(validate(p));
  d_at(15);
  EXPECT_THROW(validate(p), InvalidValue);
  d_at(48);
  EXPECT_NO_THROW(validate(p));
  d_at(49);
  EXPECT_THROW(validate(p), InvalidValue);
  p.a.row_stride = p.d.row_stride = 32;
  d_at(16);  // even and odd rows
  EXPECT_NO_THROW(validate(p));
  p.a = {p.a.data, DType::f16, 1, 32, 0};  // transposed columns beside transposed columns
  p.d = {static_cast<char*>(p.a.data) + 2 * 8, DType::f16, 1, 32, 0};
  EXPECT_NO_THROW(validate(p));
  p.d.data = static_cast<char*>(p.a.data) + 2 * 7;
  EXPECT_THROW(validate(p), InvalidValue);
  p = placed(4, 4, 4, "nn", 6);
  p.a.batch_stride = p.d.batch_stride = 32;  // batches of A and D alternate
  d_at(16);
  EXPECT_NO_THROW(validate(p));
  d_at(8);
  EXPECT_THROW(validate(p), InvalidValue);
  p = placed(4, 4, 4);
  p.d.data = p.b.data;
  expect_words(refusal<InvalidValue>(p), {"D overlaps B"});
}

TEST(Overlap, OfDifferentElementSizesIsCountedInBytes) {
  GemmProblem p = placed(8, 8, 16);
  p.d.dtype = DType::f32;
  p.a.row_stride = 32, p.d.row_stride = 16;  // one pitch of 64 bytes, halves of it
  p.d.data = static_cast<char*>(p.a.data) + 32;
  EXPECT_NO_THROW(validate(p));
  p.d.data = static_cast<char*>(p.a.data) + 28;
  EXPECT_THROW(validate(p), InvalidValue);
}

TEST(Overlap, CMayBeDOrApartFromItButNotPartly) {
  GemmProblem p = placed(8, 8, 8, "nt", 2, true);
  p.c = p.d;
  EXPECT_NO_THROW(validate(p));
  p.c.data = static_cast<char*>(p.c.data) + 2;
  expect_words(refusal<InvalidValue>(p), {"D overlaps C"});
  p.c = p.d;
  p.c.row_stride = -8;
  p.c.data = static_cast<char*>(p.d.data) + 2 * 56;
  EXPECT_THROW(validate(p), InvalidValue);
  p.c = {address(1 << 30), DType::f16, 0, 1, 0};  // one row for all: a bias
  EXPECT_NO_THROW(validate(p));
  p.c.data = p.d.data;
  EXPECT_THROW(validate(p), InvalidValue);
  p.beta = 0;  // then C is not read
  EXPECT_NO_THROW(validate(p));
  p = placed(1, 8, 8, "nt", 1, true);
  p.c = p.d;
  p.c.row_stride = 12345;  // a single row: its stride means nothing
  EXPECT_NO_THROW(validate(p));
}

}  // namespace
}  // namespace fastgemm
