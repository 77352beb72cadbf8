// The emulator's memory: which bytes are elements, bank conflicts, vector clocks.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "emulator/clocks.hpp"
#include "emulator/counters.hpp"
#include "emulator/global_memory.hpp"
#include "emulator/swizzle.hpp"

namespace fastgemm::emulated {
namespace {

MatrixView view_of(std::vector<std::uint16_t>& memory, std::int64_t first, std::int64_t row_stride,
                   std::int64_t col_stride, std::int64_t batch_stride = 0) {
  MatrixView view;
  view.data = memory.data() + first;
  view.row_stride = row_stride;
  view.col_stride = col_stride;
  view.batch_stride = batch_stride;
  return view;
}

TEST(EmulatorArray, GapsBetweenRowsAreNoElements) {
  std::vector<std::uint16_t> memory(100);
  const Array array("A", view_of(memory, 10, 20, 1), 1, 3, 8, Array::Use::read);
  EXPECT_TRUE(array.contains(&memory[10], 16));
  EXPECT_TRUE(array.contains(&memory[50], 16));
  EXPECT_FALSE(array.contains(&memory[11], 16));
  EXPECT_FALSE(array.contains(&memory[9], 2));
  EXPECT_FALSE(array.contains(&memory[58], 2));
  EXPECT_FALSE(array.contains(reinterpret_cast<char*>(&memory[10]) + 1, 2));
  EXPECT_EQ(array.place(&memory[33]), "A[1, 3]");
  EXPECT_NE(array.place(&memory[19]).find("gap"), std::string::npos);
  EXPECT_NE(array.place(&memory[60]).find("4 bytes behind the end"), std::string::npos);
}

TEST(EmulatorArray, NegativeAndTransposedStridesKeepTheirIndices) {
  std::vector<std::uint16_t> memory(100);
  const Array flipped("A", view_of(memory, 42, -20, 1), 1, 3, 8, Array::Use::read);
  EXPECT_EQ(flipped.place(&memory[42]), "A[0, 0]");
  EXPECT_EQ(flipped.place(&memory[5]), "A[2, 3]");
  const Array columns("B", view_of(memory, 0, 1, 10), 1, 8, 3, Array::Use::read);
  EXPECT_EQ(columns.place(&memory[12]), "B[2, 1]");
  EXPECT_TRUE(columns.contains(&memory[10], 16));
}

TEST(EmulatorArray, EveryElementIsWrittenOnce) {
  std::vector<std::uint16_t> memory(64);
  Array array("D", view_of(memory, 0, 8, 1, 32), 2, 3, 5, Array::Use::write);
  EXPECT_EQ(array.first_unwritten(), "[0, 0, 0]");
  for (std::int64_t batch : {0, 1})
    for (std::int64_t row = 0; row < 3; ++row)
      for (std::int64_t col = 0; col < 5; ++col) {
        if (batch == 1 && row == 2 && col == 3) continue;
        EXPECT_TRUE(
            array.mark_written(&memory[static_cast<std::size_t>(batch * 32 + row * 8 + col)], 2));
      }
  EXPECT_EQ(array.first_unwritten(), "[1, 2, 3]");
  EXPECT_FALSE(array.mark_written(&memory[8], 4));
  EXPECT_TRUE(array.mark_written(&memory[32 + 16 + 3], 2));
  EXPECT_EQ(array.first_unwritten(), "");
}

TEST(EmulatorCounters, BankConflictsAreThoseOfTheHardware) {
  std::uint32_t addresses[32];
  const auto passes = [&](int stride, int bytes) {
    for (int lane = 0; lane < 32; ++lane)
      addresses[lane] = static_cast<std::uint32_t>(lane * stride);
    return wavefronts(addresses, 32, bytes);
  };
  EXPECT_EQ(passes(4, 4), 1);
  EXPECT_EQ(passes(0, 4), 1);  // one word for all
  EXPECT_EQ(passes(8, 4), 2);
  EXPECT_EQ(passes(128, 4), 32);
  EXPECT_EQ(passes(132, 4), 1);
  EXPECT_EQ(passes(8, 8), 2);
  EXPECT_EQ(passes(16, 16), 4);
  EXPECT_EQ(passes(128, 16), 32);
  EXPECT_EQ(ideal_wavefronts(32, 16), 4);
  EXPECT_EQ(ideal_wavefronts(32, 2), 1);
}

TEST(EmulatorCounters, SectorsAreCountedOnce) {
  const std::uint64_t addresses[] = {0, 2, 30, 31, 64, 96};
  EXPECT_EQ(sectors(addresses, 6, 2), 4);  // the fourth reaches into the second sector
}

TEST(EmulatorCounters, LanesOfOneInstructionAreCountedTogether) {
  Counters counters;
  WarpAccesses accesses;
  for (int lane = 0; lane < 32; ++lane)
    for (std::uint32_t i = 0; i < 3; ++i)
      accesses.add(counters, Op::ld_shared, lane, i * 4096 + static_cast<std::uint32_t>(lane) * 4,
                   0, 4, 0);
  accesses.add(counters, Op::ld_shared, 5, 0, 0, 4, 0);
  EXPECT_EQ(counters[Op::ld_shared].executed, 3);
  accesses.flush(counters);
  EXPECT_EQ(counters[Op::ld_shared].executed, 4);
  EXPECT_EQ(counters[Op::ld_shared].wavefronts, 4);
  EXPECT_EQ(counters[Op::ld_shared].shared_bytes, 3 * 128 + 4);
}

TEST(EmulatorClocks, JoiningKnowsWhatBothKnew) {
  const Agents agents(64, 1);
  ClockPool pool(agents);
  ClockRef a = pool.fresh(), b = pool.fresh();
  a->know(3, 5);
  b->know(agents.engine_of(0), 7);
  const ClockRef both = pool.joined(a, b);
  EXPECT_EQ(both->known(3), 5u);
  EXPECT_EQ(both->known(agents.engine_of(0)), 7u);
  EXPECT_EQ(pool.joined(both, a), both);
  EXPECT_EQ(pool.joined(a, both), both);
  EXPECT_EQ(both->fenced(3), 0u);
  const ClockRef fenced = pool.copy(*both);
  fenced->fence_all_known();
  EXPECT_EQ(fenced->fenced(3), 5u);
}

TEST(EmulatorSwizzle, PermutesChunksWithinRows) {
  EXPECT_EQ(swizzled(0x400, 128), 0x400u);
  EXPECT_EQ(swizzled(0x480, 128), 0x490u);
  EXPECT_EQ(swizzled(0x7f0, 128), 0x780u);
  EXPECT_EQ(swizzled(0x480, 64), 0x490u);
  EXPECT_EQ(swizzled(0x600, 64), 0x600u);
  EXPECT_EQ(swizzled(0x480, 32), 0x490u);
  EXPECT_EQ(swizzled(0x500, 32), 0x500u);
  EXPECT_EQ(swizzled(0x7f0, 16), 0x7f0u);
}

// What the swizzles of TMA and WGMMA are for: a core matrix, 8 rows of one chunk, in one pass.
TEST(EmulatorSwizzle, CoreMatricesHaveTheirRowsInDifferentBanks) {
  for (const auto& [row_bytes, plain_passes] :
       std::vector<std::pair<int, int>>{{128, 8}, {64, 4}, {32, 2}, {16, 1}})
    for (int chunk = 0; chunk < row_bytes / 16; ++chunk) {
      std::uint32_t plain[8], permuted[8];
      for (int row = 0; row < 8; ++row) {
        plain[row] = static_cast<std::uint32_t>(0x1000 + row * row_bytes + chunk * 16);
        permuted[row] = swizzled(plain[row], row_bytes);
      }
      EXPECT_EQ(wavefronts(plain, 8, 16), plain_passes) << row_bytes;
      EXPECT_EQ(wavefronts(permuted, 8, 16), 1) << row_bytes << ", chunk " << chunk;
    }
}

}  // namespace
}  // namespace fastgemm::emulated
