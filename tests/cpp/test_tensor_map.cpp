// Tensor maps: the copy engine reads and writes the very elements that the views name, in boxes
// that the driver takes and that add up to the tiles.
#include <array>

#include "planner.hpp"
#include "plans.hpp"
#include "tensor_map.hpp"

namespace fastgemm {
namespace {

// Where the TMA finds the element at these coordinates.
std::intptr_t element(const TensorBox& t, std::int64_t x, std::int64_t y, std::int64_t z,
                      std::int64_t batch) {
  return reinterpret_cast<std::intptr_t>(t.data) + 2 * x + t.stride_bytes[0] * y +
         t.stride_bytes[1] * z + t.stride_bytes[2] * batch;
}

std::intptr_t element(const MatrixView& v, std::int64_t batch, std::int64_t row, std::int64_t col) {
  return reinterpret_cast<std::intptr_t>(v.data) +
         2 * (v.batch_stride * batch + v.row_stride * row + v.col_stride * col);
}

struct Coordinates {
  std::int64_t x, y, z;
};

// How device/mainloop_sm90.cuh addresses element (outer, k) of an operand.
Coordinates coordinates(Major major, const KernelConfig& kernel, std::int64_t outer,
                        std::int64_t k) {
  const int span = kernel.swizzle_bytes / 2;
  if (major == Major::mn) return {outer, k, 0};
  if (kernel.block_k == span) return {k, outer, 0};
  return {k % span, outer, k / span};
}

bool inside(const TensorBox& t, const Coordinates& c, std::int64_t batch) {
  return c.x >= 0 && c.x < t.extent[0] && c.y >= 0 && c.y < t.extent[1] && c.z >= 0 &&
         c.z < t.extent[2] && batch >= 0 && batch < t.extent[3];
}

// What cuTensorMapEncodeTiled refuses, and the swizzle's width.
void expect_encodable(const TensorBox& t, const std::string& of) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(t.data) % 16, 0u) << of;
  for (std::int64_t e : t.extent) EXPECT_TRUE(e >= 1 && e < std::int64_t{1} << 32) << of;
  for (std::int64_t s : t.stride_bytes)
    EXPECT_TRUE(s > 0 && s % 16 == 0 && s < std::int64_t{1} << 40) << of << " stride " << s;
  for (std::int64_t b : t.box) EXPECT_TRUE(b >= 1 && b <= 256) << of << " box " << b;
  EXPECT_TRUE(t.box[0] == 64 || t.box[0] == 32 || t.box[0] == 16 || t.box[0] == 8) << of;
  EXPECT_LE(t.box[0], t.pitch) << of;
}

// A product that family sm90 takes, in a layout, batch and order of D that the dice decide.
GemmProblem tma_problem(Dice& dice) {
  const auto layout = dice.pick<const char*>({"nn", "nt", "tn", "tt"});
  const auto extent = [&] { return 8 * (1 + dice.below(300)); };
  const std::int64_t batch = dice.one_in(3) ? 3 : 1;
  GemmProblem p = placed(extent(), extent(), dice.one_in(2) ? 64 * (1 + dice.below(40)) : extent(),
                         layout, batch);
  if (dice.one_in(3)) {
    std::int64_t& pitch = p.a.row_stride == 1 ? p.a.col_stride : p.a.row_stride;
    pitch += 24, p.a.batch_stride += 24 * (p.m + p.k);
  }
  if (dice.one_in(4)) p.b.batch_stride = 0;
  if (dice.one_in(4)) p.d.row_stride = 1, p.d.col_stride = p.m;
  return p;
}

// Kernels of family sm90 for it: what the planner considers, and deeper, sliced ones.
std::vector<Plan> plans_of(Dice& dice, const GemmProblem& p) {
  std::vector<Plan> all;
  for (bool swapped : {false, true})
    for (int block_k : {64, 128, 256})
      for (int cluster : {0, 1, 2}) {
        GemmConfig c;
        c.family = Family::sm90;
        c.swap_ab = swapped;
        c.block_k = block_k;
        c.block_m = dice.pick<int>({64, 128});
        c.block_n = dice.pick<int>({16, 64, 80, 96, 128});
        c.num_stages = 2;
        c.cluster_m = cluster == 1 ? 2 : 1;
        c.cluster_n = cluster == 2 ? 2 : 1;
        if (dice.one_in(3)) c.multicast = false;
        c.swizzle_bytes = dice.pick<int>({128, 128, 64, 32, 16});
        try {
          all.push_back(plan(p, hardware("H200"), c));
        } catch (const InvalidValue& refused) {
          EXPECT_TRUE(block_k > 64 || *c.block_n % 64 != 0 || *c.swizzle_bytes < 128)
              << refused.what();
        }
      }
  return all;
}

template <class Body>
void for_each_plan(unsigned seed, Body body) {
  Dice dice(seed);
  std::size_t plans = 0;
  for (int round = 0; round < 150 && !testing::Test::HasFailure(); ++round)
    for (const Plan& p : plans_of(dice, tma_problem(dice))) {
      body(dice, oriented(p.kernel, p.problem), p.kernel);
      ++plans;
    }
  EXPECT_GT(plans, 500u);
}

TEST(TensorMaps, OperandsAreReadWhereTheViewsSay) {
  for_each_plan(9, [](Dice& dice, const GemmProblem& p, const KernelConfig& k) {
    const TensorBox a = tensor_boxes_a(p, k).whole, b = tensor_boxes_b(p, k).whole;
    for (int sample = 0; sample < 20; ++sample) {
      const std::int64_t i = dice.below(static_cast<int>(p.batch)),
                         m = dice.below(static_cast<int>(p.m)),
                         n = dice.below(static_cast<int>(p.n)),
                         kk = dice.below(static_cast<int>(p.k));
      const Coordinates at_a = coordinates(k.a_major, k, m, kk);
      const Coordinates at_b = coordinates(k.b_major, k, n, kk);
      const std::int64_t i_a = p.a.batch_stride ? i : 0, i_b = p.b.batch_stride ? i : 0;
      EXPECT_TRUE(inside(a, at_a, i_a)) << dump(p) << k.str();
      EXPECT_TRUE(inside(b, at_b, i_b)) << dump(p) << k.str();
      EXPECT_EQ(element(a, at_a.x, at_a.y, at_a.z, i_a), element(p.a, i, m, kk)) << k.str();
      EXPECT_EQ(element(b, at_b.x, at_b.y, at_b.z, i_b), element(p.b, i, kk, n)) << k.str();
    }
  });
}

// What lies outside of the operand is outside of the map: it is read as zeros.
TEST(TensorMaps, NothingBeyondAnOperandIsRead) {
  for_each_plan(10, [](Dice& dice, const GemmProblem& p, const KernelConfig& k) {
    const TensorBox a = tensor_boxes_a(p, k).whole, b = tensor_boxes_b(p, k).whole;
    const std::int64_t more = dice.below(300);
    EXPECT_FALSE(inside(a, coordinates(k.a_major, k, p.m + more, 0), 0)) << k.str();
    EXPECT_FALSE(inside(a, coordinates(k.a_major, k, 0, p.k + more), 0)) << k.str();
    EXPECT_FALSE(inside(b, coordinates(k.b_major, k, p.n + more, 0), 0)) << k.str();
    EXPECT_FALSE(inside(b, coordinates(k.b_major, k, 0, p.k + more), 0)) << k.str();
    EXPECT_FALSE(inside(a, coordinates(k.a_major, k, 0, 0), p.batch)) << k.str();
  });
}

TEST(TensorMaps, BoxesAddUpToTheTiles) {
  for_each_plan(11, [](Dice&, const GemmProblem& p, const KernelConfig& k) {
    struct Operand {
      TensorBox box;
      Major major;
      int outer, slices;
    };
    for (const Operand& o :
         {Operand{tensor_boxes_a(p, k).whole, k.a_major, k.block_m, k.multicast ? k.cluster_n : 1},
          Operand{tensor_boxes_b(p, k).whole, k.b_major, k.block_n,
                  k.multicast ? k.cluster_m : 1}}) {
      expect_encodable(o.box, k.str());
      const int span = k.swizzle_bytes / 2;
      EXPECT_EQ(o.box.box[0], span) << "one swizzle atom: " << k.str();
      EXPECT_EQ(o.box.pitch, span) << "and its swizzle: " << k.str();
      const std::int64_t copies = o.major == Major::mn ? o.outer / span : 1;
      EXPECT_EQ(copies * o.slices * o.box.box[0] * o.box.box[1] * o.box.box[2], o.outer * k.block_k)
          << k.str();
      EXPECT_EQ(o.box.box[1] % 8, 0) << "rows of a swizzle pattern: " << k.str();
    }
  });
}

// At the operand's edge: no rows but those that exist and what makes eights of them.
TEST(TensorMaps, EdgeBoxesHoldTheRowsThatExist) {
  int cut = 0;
  for_each_plan(13, [&](Dice&, const GemmProblem& p, const KernelConfig& k) {
    struct Operand {
      OperandBoxes boxes;
      Major major;
      std::int64_t extent;
      int block, slices;
    };
    const int span = k.swizzle_bytes / 2;
    for (const Operand& o :
         {Operand{tensor_boxes_a(p, k), k.a_major, p.m, k.block_m, k.multicast ? k.cluster_n : 1},
          Operand{tensor_boxes_b(p, k), k.b_major, p.n, k.block_n,
                  k.multicast ? k.cluster_m : 1}}) {
      const std::int64_t present = o.extent % o.block;
      if (o.major == Major::mn || present == 0) {
        EXPECT_EQ(o.boxes.edge, o.boxes.whole) << k.str();
        continue;
      }
      ++cut;
      expect_encodable(o.boxes.edge, k.str());
      const std::int64_t slices = k.block_k > span ? 1 : o.slices;
      const std::int64_t rows = slices * o.boxes.edge.box[1];
      EXPECT_GE(rows, present) << k.str();
      EXPECT_LT(rows, present + 8 * slices) << k.str();
      EXPECT_LE(rows, o.block) << k.str();
      EXPECT_EQ(o.boxes.edge.box[1] % 8, 0) << k.str();
      EXPECT_EQ(o.boxes.edge.box[2], 1) << "a column of K: " << k.str();
      TensorBox same = o.boxes.edge;
      std::copy_n(o.boxes.whole.box, 4, same.box);
      EXPECT_EQ(same, o.boxes.whole) << "all but the box is the same: " << k.str();
    }
  });
  EXPECT_GT(cut, 300);
}

TEST(TensorMaps, TheResultIsWrittenWhereItsViewSays) {
  int stored = 0;
  for_each_plan(12, [&](Dice& dice, const GemmProblem& p, const KernelConfig& k) {
    if (!k.tma_stores) return;
    ++stored;
    const TensorBox d = tensor_box_d(p, k);
    expect_encodable(d, k.str());
    EXPECT_EQ(d.extent[3], p.d.batch_stride ? p.batch : 1);
    EXPECT_EQ(d.box[0] * d.box[1] * d.box[2], 64 * store_panel_cols(k)) << k.str();
    EXPECT_EQ(k.block_n % store_panel_cols(k), 0)
        << "a panel must not reach into the neighbour's tile";
    EXPECT_EQ(k.swap_ab ? d.box[0] : d.box[1], 64) << "rows of the tile: " << k.str();
    for (int sample = 0; sample < 20; ++sample) {
      const std::int64_t i = dice.below(static_cast<int>(p.batch)),
                         m = dice.below(static_cast<int>(p.m)),
                         n = dice.below(static_cast<int>(p.n));
      const std::int64_t x = k.swap_ab ? m : n, y = k.swap_ab ? n : m;
      EXPECT_TRUE(inside(d, {x, y, 0}, i)) << dump(p) << k.str();
      EXPECT_EQ(element(d, x, y, 0, i), element(p.d, i, m, n)) << dump(p) << k.str();
    }
    EXPECT_FALSE(inside(d, {k.swap_ab ? p.m : p.n, 0, 0}, 0)) << "writes beyond D";
    EXPECT_FALSE(inside(d, {0, k.swap_ab ? p.n : p.m, 0}, 0)) << "writes beyond D";
  });
  EXPECT_GT(stored, 300);
}

KernelConfig kernel_for(const GemmProblem& p, int block_k, int cluster_m, int cluster_n,
                        int swizzle_bytes = 128) {
  GemmConfig c;
  c.family = Family::sm90;
  c.block_m = 128, c.block_n = 64, c.block_k = block_k, c.num_stages = 2, c.swap_ab = false;
  c.cluster_m = cluster_m, c.cluster_n = cluster_n;
  c.swizzle_bytes = swizzle_bytes;
  return plan(p, hardware("H200"), c).kernel;
}

void expect_box(const TensorBox& t, std::vector<std::int64_t> extent,
                std::vector<std::int64_t> stride_bytes, std::vector<std::int64_t> box) {
  EXPECT_EQ(std::vector<std::int64_t>(t.extent, t.extent + 4), extent);
  EXPECT_EQ(std::vector<std::int64_t>(t.stride_bytes, t.stride_bytes + 3), stride_bytes);
  EXPECT_EQ(std::vector<std::int64_t>(t.box, t.box + 3), box);
}

// The same by hand, for the eye.
TEST(TensorMaps, ExamplesOfEachKind) {
  const GemmProblem nt = placed(1000, 504, 512, "nt", 2);
  expect_box(tensor_boxes_a(nt, kernel_for(nt, 64, 1, 1)).whole, {512, 1000, 1, 2},
             {1024, 1024, 1024000}, {64, 128, 1});
  expect_box(tensor_boxes_b(nt, kernel_for(nt, 64, 1, 1)).whole, {512, 504, 1, 2},
             {1024, 1024, 516096}, {64, 64, 1});
  expect_box(tensor_box_d(nt, kernel_for(nt, 64, 1, 1)), {504, 1000, 1, 2}, {1008, 1008, 1008000},
             {64, 64, 1});
  // k-tiles of several swizzle atoms.
  expect_box(tensor_boxes_a(nt, kernel_for(nt, 128, 1, 1)).whole, {64, 1000, 8, 2},
             {1024, 128, 1024000}, {64, 128, 2});
  expect_box(tensor_boxes_a(nt, kernel_for(nt, 256, 1, 1)).whole, {64, 1000, 8, 2},
             {1024, 128, 1024000}, {64, 128, 4});
  // Narrower atoms: one of 64 bytes, and four of 32.
  expect_box(tensor_boxes_a(nt, kernel_for(nt, 32, 1, 1, 64)).whole, {512, 1000, 1, 2},
             {1024, 1024, 1024000}, {32, 128, 1});
  expect_box(tensor_boxes_a(nt, kernel_for(nt, 64, 1, 1, 32)).whole, {16, 1000, 32, 2},
             {1024, 32, 1024000}, {16, 128, 4});
  // At the edge 104 of 128 rows exist, and 56 of 64: whole, column by column, in slices.
  const auto edge = [&](int block_k, int cluster_m, int cluster_n) {
    const KernelConfig k = kernel_for(nt, block_k, cluster_m, cluster_n);
    const OperandBoxes a = tensor_boxes_a(nt, k), b = tensor_boxes_b(nt, k);
    return std::array<std::int64_t, 4>{a.edge.box[1], a.edge.box[2], b.edge.box[1], b.edge.box[2]};
  };
  EXPECT_EQ(edge(64, 1, 1), (std::array<std::int64_t, 4>{104, 1, 56, 1}));
  EXPECT_EQ(edge(128, 1, 1), (std::array<std::int64_t, 4>{104, 1, 56, 1}));
  EXPECT_EQ(edge(64, 2, 1), (std::array<std::int64_t, 4>{104, 1, 32, 1}));
  EXPECT_EQ(edge(64, 1, 2), (std::array<std::int64_t, 4>{56, 1, 56, 1}));
  EXPECT_EQ(edge(128, 1, 2), (std::array<std::int64_t, 4>{104, 1, 56, 1}));
  // Each CTA of a cluster fetches its slice: CTAs beside each other of A, above each other of B.
  expect_box(tensor_boxes_a(nt, kernel_for(nt, 64, 1, 2)).whole, {512, 1000, 1, 2},
             {1024, 1024, 1024000}, {64, 64, 1});
  expect_box(tensor_boxes_b(nt, kernel_for(nt, 64, 2, 1)).whole, {512, 504, 1, 2},
             {1024, 1024, 516096}, {64, 32, 1});
  expect_box(tensor_boxes_b(nt, kernel_for(nt, 128, 2, 1)).whole, {64, 504, 8, 2},
             {1024, 128, 516096}, {64, 64, 1});
  // One B for all batches: there is nothing to step over.
  GemmProblem shared_b = nt;
  shared_b.b.batch_stride = 0;
  expect_box(tensor_boxes_b(shared_b, kernel_for(nt, 64, 1, 1)).whole, {512, 504, 1, 1},
             {1024, 1024, 1024}, {64, 64, 1});
  const GemmProblem tn = placed(1000, 504, 512, "tn");
  expect_box(tensor_boxes_a(tn, kernel_for(tn, 64, 1, 1, 16)).whole, {1000, 512, 1, 1},
             {2000, 2000, 2000}, {8, 64, 1});
  expect_box(tensor_boxes_a(tn, kernel_for(tn, 64, 1, 1)).whole, {1000, 512, 1, 1},
             {2000, 2000, 2000}, {64, 64, 1});
  expect_box(tensor_boxes_b(tn, kernel_for(tn, 128, 1, 1)).whole, {504, 512, 1, 1},
             {1008, 1008, 1008}, {64, 128, 1});
}

TEST(TensorMaps, BoxesDifferInEveryField) {
  const GemmProblem p = placed(512, 512, 512);
  const TensorBox base = tensor_boxes_a(p, kernel_for(p, 64, 1, 1)).whole;
  std::vector<TensorBox> all(13, base);
  all[1].data = address(64);
  for (int i = 0; i < 4; ++i) all[2 + i].extent[i] += 1;
  for (int i = 0; i < 3; ++i) all[6 + i].stride_bytes[i] += 16;
  for (int i = 0; i < 3; ++i) all[9 + i].box[i] += 1;
  all[12].dtype = DType::bf16;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < all.size(); ++j) EXPECT_EQ(all[i] == all[j], i == j) << i << j;
}

TEST(TensorMaps, RefusalsNameTheirCause) {
  const auto why = [](const GemmProblem& p) {
    const char* text = refuse_tma(p, traits_of(p));
    return std::string(text ? text : "taken");
  };
  const std::int64_t far = std::int64_t{1} << 39;  // elements: 2^40 bytes
  GemmProblem p = packed_problem(512, 512, 512, DType::f16);
  EXPECT_EQ(why(p), "taken");
  p.a.row_stride = far;
  expect_words(why(p), {"2^40"});
  p.a.row_stride = far - 8;
  EXPECT_EQ(why(p), "taken");
  p.a.row_stride = 513;
  expect_words(why(p), {"16-byte aligned"});
  expect_words(why(packed_problem(512, 512, 0, DType::f16)), {"k = 0"});
  expect_words(why(packed_problem(std::int64_t{1} << 31, 8, 8, DType::f16)), {"2^31"});
  EXPECT_EQ(why(packed_problem((std::int64_t{1} << 31) - 8, 8, 8, DType::f16)), "taken");
}

}  // namespace
}  // namespace fastgemm
