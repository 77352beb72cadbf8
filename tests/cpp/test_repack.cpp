// Repacked operands: where the copies lie, which threads make them, and when the planner wants
// them.
#include <array>
#include <set>

#include "plans.hpp"
#include "repack.hpp"
#include "tensor_map.hpp"

namespace fastgemm {
namespace {

constexpr Repack both = {true, true};

// Strides of a view of batch x rows x cols that repacking must be able to take.
std::vector<MatrixView> awkward_views(std::int64_t rows, std::int64_t cols) {
  std::vector<MatrixView> views;
  for (const auto& [row, col] : std::vector<std::pair<std::int64_t, std::int64_t>>{{cols, 1},
                                                                                   {1, rows},
                                                                                   {cols + 3, 1},
                                                                                   {-cols, 1},
                                                                                   {cols, -1},
                                                                                   {3 * cols, 3},
                                                                                   {0, 1},
                                                                                   {1, 0},
                                                                                   {2, 2 * rows}})
    for (std::int64_t batch : {std::int64_t{0}, rows * cols * 9})
      views.push_back({address(std::int64_t{1} << 40 | 6), DType::f16, row, col, batch});
  return views;
}

TEST(Repacking, CopiesAreAlignedDisjointAndKeepTheirContiguousIndex) {
  char* const workspace = static_cast<char*>(address(std::int64_t{1} << 44));
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1}, {3, 200, 65}, {999, 64, 999}, {128, 129, 4072}})
    for (const MatrixView& a : awkward_views(m, k))
      for (const MatrixView& b : awkward_views(k, n)) {
        GemmProblem p = packed_problem(m, n, k, DType::f16, "nt", 3);
        p.a = a, p.b = b;
        const GemmProblem q = repacked(p, both, workspace);
        const ProblemTraits was = traits_of(p), is = traits_of(q);
        EXPECT_EQ(is.a_major, was.a_major);
        EXPECT_EQ(is.b_major, was.b_major);
        EXPECT_EQ(is.a_copy_bytes, 16);
        EXPECT_EQ(is.b_copy_bytes, 16);
        EXPECT_TRUE(is.tma);
        EXPECT_EQ(q.a.batch_stride == 0, p.a.batch_stride == 0);
        EXPECT_EQ(std::max(q.a.row_stride, q.a.col_stride) % 64, 0);
        const ByteRange a_range = byte_range(q.a, 3, m, k), b_range = byte_range(q.b, 3, k, n);
        const auto start = reinterpret_cast<std::intptr_t>(workspace);
        const auto end = start + static_cast<std::intptr_t>(repack_bytes(p, both));
        EXPECT_EQ(a_range.begin, start);
        EXPECT_LE(a_range.end, b_range.begin);
        EXPECT_LE(b_range.end, end);
        if (HasFailure()) FAIL() << dump(p) << "\n" << dump(q);
      }
}

// What device/repack.cuh makes of the parameters: every chunk of the copy has one thread.
TEST(Repacking, EveryChunkIsCopiedOnce) {
  for (const auto& [rows, cols] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {1, 1}, {1, 9}, {7, 33}, {5, 64}, {300, 65}, {17, 1023}, {3, 1025}, {2, 5000}}) {
    GemmProblem p = packed_problem(rows, 8, cols, DType::f16, "nt", 2);
    p.a.data = address(kBase + 2);
    const Repack which = {true, false};
    const GemmProblem q = repacked(p, which, address(kBase << 10));
    const RepackParams params = repack_params(p, q, which);
    const RepackOperand& o = params.operand[0];
    ASSERT_EQ(params.operand[1].ctas, 0u);
    ASSERT_EQ(o.ctas, 2 * o.ctas_of_matrix);
    ASSERT_EQ(o.source_begin, static_cast<unsigned long long>(kBase + 2));
    ASSERT_EQ(o.source_end, static_cast<unsigned long long>(kBase + 2 + 2 * 2 * rows * cols));
    std::set<std::pair<std::int64_t, std::int64_t>> done;
    const unsigned lanes = 1u << o.lane_bits;
    for (unsigned team = 0; team < o.ctas_of_matrix * (REPACK_THREADS / lanes); ++team)
      for (unsigned lane = 0; lane < lanes; ++lane)
        for (int i = 0; i < REPACK_CHUNKS; ++i) {
          const std::int64_t row = team / o.segments_of_row;
          const std::int64_t chunk =
              team % o.segments_of_row * (lanes * REPACK_CHUNKS) + lane + i * lanes;
          if (row < rows && 8 * chunk < cols) {
            EXPECT_TRUE(done.emplace(row, chunk).second) << row << ", " << chunk;
          }
        }
    EXPECT_EQ(done.size(), static_cast<std::size_t>(rows * ceil_div(cols, 8)))
        << rows << "x" << cols;
  }
}

TEST(Repacking, LargeProductsOfOddExtentsRunOnHoppersUnits) {
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
           {3001, 5001, 2469}, {999, 999, 999}, {1999, 1999, 1999}, {3999, 3999, 3999}})
    for (const char* layout : {"nn", "nt", "tn", "tt"}) {
      const Plan p = plan(packed_problem(m, n, k, DType::bf16, layout), hardware("H200"));
      EXPECT_EQ(p.kernel.family, Family::sm90) << p.str();
      EXPECT_TRUE(p.kernel.repack_a || p.kernel.repack_b) << p.str();
      EXPECT_GT(p.cost.repack_us, 0) << p.str();
      expect_words(p.explain(), {"copied into aligned rows first", "repacking"});
    }
}

TEST(Repacking, OnlyWhatIsAwkwardIsCopied) {
  GemmProblem p = placed(4096, 4096, 4096);
  EXPECT_FALSE(plan(p, hardware("H200")).kernel.repack_a);
  p.b.data = address((std::int64_t{3} << 45) + 2);
  for (const char* card : {"H200", "A100"}) {
    const KernelConfig k = plan(p, hardware(card)).kernel;
    EXPECT_TRUE(!k.repack_a && k.repack_b) << k.str();
    EXPECT_EQ(k.b_copy_bytes, 16) << k.str();
  }
  p.a.row_stride = -4096;
  EXPECT_TRUE(plan(p, hardware("H200")).kernel.repack_a);
  EXPECT_FALSE(plan(p, hardware("A100")).kernel.repack_a);
}

TEST(Repacking, SmallProductsAreReadWhereTheyLie) {
  for (const char* card : {"H200", "A100"})
    for (int extent : {1, 17, 65}) {
      const KernelConfig k =
          plan(packed_problem(extent, 65, 63, DType::f16), hardware(card)).kernel;
      EXPECT_FALSE(k.repack_a || k.repack_b) << k.str();
    }
}

// A copy that does not fit is not made unless it is asked for.
TEST(Repacking, HugeCopiesAreMadeOnRequestOnly) {
  const GemmProblem p = packed_problem(1 << 16, 4096, 9001, DType::f16);
  EXPECT_FALSE(plan(p, hardware("H200")).kernel.repack_a);
  EXPECT_TRUE(plan(p, hardware("H200"), only(WISH(repack_a, true))).kernel.repack_a);
}

TEST(Repacking, MoreCtasThanAGridHoldsAreRefused) {
  for (const char* card : {"H200", "A100"})
    expect_words(plan_refusal(packed_problem(9, 9, 8, DType::f16, "nt", std::int64_t{1} << 33),
                              hardware(card), only(WISH(repack_a, true))),
                 {"grid", "2147483647", "split the batch"});
}

// A plan is reused for problems of equal traits: what makes a copy or gemv pay is among them.
TEST(Repacking, TraitsTellHowOperandsLie) {
  const GemmProblem packed = placed(64, 64, 65);
  GemmProblem apart = packed, lines = packed;
  apart.a.row_stride = 3 * 65, apart.a.col_stride = 3;
  lines.a.row_stride = 128;
  EXPECT_EQ(traits_of(packed).a_runs, Runs::rows);
  EXPECT_EQ(traits_of(apart).a_runs, Runs::none);
  EXPECT_EQ(traits_of(lines).a_runs, Runs::lines);
  EXPECT_NE(traits_of(packed).code(), traits_of(apart).code());
  EXPECT_NE(traits_of(packed).code(), traits_of(lines).code());
}

}  // namespace
}  // namespace fastgemm
