// Products of warpgroups out of shared memory: descriptors, groups, and results that must not be
// used.
#include <algorithm>
#include <cstring>

#include "emulator/products.hpp"
#include "emulator/swizzle.hpp"
#include "emulator/world.hpp"
#include "fastgemm/device/emulated/numbers.cuh"

namespace fastgemm::emulated {
namespace {

constexpr int depth = 16, rows_of_a = 64;

// PTX ISA, "Matrix Descriptor Format".
struct Descriptor {
  u32 start, leading, stride;  // bytes
  u32 base_offset;
  int row_bytes;  // of a swizzle atom; 16: no swizzle

  explicit Descriptor(u64 bits)
      : start(static_cast<u32>(bits & 0x3fff) << 4),
        leading(static_cast<u32>(bits >> 16 & 0x3fff) << 4),
        stride(static_cast<u32>(bits >> 32 & 0x3fff) << 4),
        base_offset(static_cast<u32>(bits >> 49 & 7)) {
    constexpr int rows[] = {16, 128, 64, 32};
    row_bytes = rows[bits >> 62];
  }

  // Of the 16-byte chunk `chunk` along the contiguous index of line `line` of the other one.
  u32 address(bool mn_major, int line, int chunk) const {
    const int chunks = row_bytes / 16;
    // MN-major without a swizzle, the offsets change places.
    const bool exchanged = mn_major && row_bytes == 16;
    const u32 place = start + static_cast<u32>(line / 8) * (exchanged ? leading : stride) +
                      static_cast<u32>(line % 8 * row_bytes + chunk % chunks * 16) +
                      static_cast<u32>(chunk / chunks) * (exchanged ? stride : leading);
    return swizzled(place, row_bytes);
  }
};

}  // namespace

// Why a warpgroup must not use four bytes of an operand; empty where it may. Every warp reads all
// of B, and of A its own 16 rows.
std::string World::refuse_operand(const Granule& g, u32 home, bool is_b, int row) const {
  const int first_warp = current_->number / 128 * 4;
  if (g.write.agent == Epoch::none || g.barrier) return "nothing has written it";
  if (g.origin != home) return "it belongs to another stage";
  for (int warp = is_b ? 0 : row / 16; warp < (is_b ? 4 : row / 16 + 1); ++warp) {
    const Fiber& reader = warps_[static_cast<std::size_t>(first_warp + warp)].lanes[0];
    if (!ordered(reader, g.write)) return describe(g.write) + " writes it, with no wait in between";
    if (!visible_to_async(reader, g.write))
      return describe(g.write) + " wrote it, with no fence.proxy.async in between";
  }
  return {};
}

// Rows of A (columns of B) whose bytes nothing wrote, or something that is not ordered before, or
// that belong to another stage than the first row's, are poison: a tile may be narrower than the
// instruction, as long as nobody uses what that gives.
void World::read_operand(PendingWgmma& to, bool is_b) {
  const Fiber& self = *current_;
  Cta& cta = *self.cta;
  const Descriptor descriptor(is_b ? to.operation.b : to.operation.a);
  const bool mn_major = is_b ? to.operation.b_mn : to.operation.a_mn;
  const int outer = is_b ? to.operation.n : rows_of_a;
  std::vector<char>& poison = is_b ? to.poison_b : to.poison_a;
  std::vector<float>& values = is_b ? to.b : to.a;
  if (descriptor.base_offset)
    fail("emulator", "wgmma", "", "descriptors with a base offset: not emulated");
  poison.assign(static_cast<std::size_t>(outer), 0);
  values.assign(static_cast<std::size_t>(outer * depth), 0.0f);
  const Epoch reader{to.group, agents_.wgmma_of(self.number / 128 * 4)};
  const auto comes_before = [&](Epoch e) { return e.agent == reader.agent || ordered(self, e); };

  u32 home = 0;  // the stage of the first row
  const int lines = mn_major ? depth : outer, chunks = mn_major ? outer / 8 : depth / 8;
  for (int line = 0; line < lines; ++line)
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const u32 offset = descriptor.address(mn_major, line, chunk) - WINDOW;
      const bool inside = offset + 16 <= static_cast<u32>(cta.shared.bytes());
      if (inside && line == 0 && chunk == 0) home = cta.shared.granule(offset).origin;
      std::string why = inside ? "" : "beyond the shared memory of the CTA";
      for (u32 at = offset; inside && at < offset + 16 && why.empty(); at += 4) {
        Granule& g = cta.shared.granule(at);
        why = refuse_operand(g, home, is_b, mn_major ? chunk * 8 : line);
        if (why.empty()) cta.shared.add_read(g, reader, comes_before);
      }
      if (!why.empty()) {
        if (cta.first_poison.empty())
          cta.first_poison = std::string(is_b ? "B" : "A") + " at offset " +
                             std::to_string(static_cast<std::int64_t>(offset)) +
                             ", in the warpgroup of thread " +
                             std::to_string(self.thread_index / 128 * 128) + ": " + why;
        const int first = mn_major ? chunk * 8 : line, count = mn_major ? 8 : 1;
        std::fill_n(poison.begin() + first, count, 1);
        continue;
      }
      float wide[8];
      widen(reinterpret_cast<const u16*>(cta.shared.data(offset)), wide, 8, to.operation.bf16);
      for (int e = 0; e < 8; ++e) {
        const int k = mn_major ? line : chunk * 8 + e, o = mn_major ? chunk * 8 + e : line;
        values[static_cast<std::size_t>(is_b ? k * outer + o : o * depth + k)] = wide[e];
      }
    }
  Counts& counts = counters_[Op::wgmma];
  counts.shared_bytes += outer * depth * 2;
  for (int line = 0; line < lines; line += 8)
    for (int chunk = 0; chunk < chunks; ++chunk) {
      u32 rows[8];
      for (int i = 0; i < 8; ++i) rows[i] = descriptor.address(mn_major, line + i, chunk);
      counts.wavefronts += wavefronts(rows, 8, 16);
      ++counts.ideal_wavefronts;
    }
}

void World::wgmma_fence() { current_->wgmma_fenced = true; }

void World::wgmma(const WgmmaOperation& operation) {
  Warpgroup& group = *current_->warp->warpgroup;
  Fiber* members = &fibers_[static_cast<std::size_t>(current_->number / 128 * 128)];
  if (!current_->wgmma_fenced)
    fail("race", "wgmma", "", "no wgmma.fence since other instructions had its accumulators");
  meet(group.meeting, members, 128, "wgmma", &operation, operation.d, 0, [&] {
    PendingWgmma pending;
    pending.group = group.group;
    pending.operation = operation;
    for (std::size_t i = 0; i < 128; ++i) {
      const auto& other = *static_cast<const WgmmaOperation*>(group.meeting.in[i]);
      if (other.a != operation.a || other.b != operation.b ||
          other.accumulate != operation.accumulate)
        fail("divergence", "wgmma", "", "the threads of the warpgroup differ in its operands");
      pending.d[i] = static_cast<float*>(group.meeting.out[i]);
    }
    read_operand(pending, false);
    read_operand(pending, true);
    group.pending.push_back(std::move(pending));
    group.open = true;
    ++counters_[Op::wgmma].executed;
  });
}

void World::wgmma_commit_group() {
  Warpgroup& group = *current_->warp->warpgroup;
  Fiber* members = &fibers_[static_cast<std::size_t>(current_->number / 128 * 128)];
  meet(group.meeting, members, 128, "wgmma.commit_group", nullptr, nullptr, 0, [&] {
    ++group.group;
    group.open = false;
  });
}

// The registers change now, not before: who reads them too early finds the old sums.
void World::wgmma_wait_group(int pending) {
  Fiber& self = *current_;
  Warpgroup& group = *self.warp->warpgroup;
  const std::uint32_t committed = group.group - 1;
  const std::uint32_t done = committed > static_cast<std::uint32_t>(pending)
                                 ? committed - static_cast<std::uint32_t>(pending)
                                 : 0;
  auto& queue = group.pending;
  std::size_t ready = 0;
  while (ready < queue.size() && queue[ready].group <= done) execute(queue[ready++]);
  queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(ready));
  self.wgmma_done = std::max(self.wgmma_done, done);
  if (pending == 0) self.wgmma_fenced = false;
  // The lanes of a warp wait as one: each comes after what the others did before.
  NamedBarrier& barrier = self.warp->sync;
  arrive(barrier, 32, "wgmma.wait_group");
  barrier.waiting.push_back(&self);
  if (barrier.arrived < 32) return wait_at("wgmma.wait_group");
  complete(barrier);
}

// d[64][n]: warp w has the rows from 16 w on, and of each 16 columns two tiles of mma.m16n8.
void World::execute(PendingWgmma& p) {
  const int n = p.operation.n;
  std::vector<float> sum(static_cast<std::size_t>(rows_of_a * n));
  const auto for_each = [&](auto body) {
    for (int t = 0; t < 128; ++t)
      for (int i = 0; i < n / 2; ++i) {
        const int row = t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8;
        const int col = i / 8 * 16 + i / 4 % 2 * 8 + 2 * (t % 4) + i % 2;
        body(p.d[static_cast<std::size_t>(t)][i], row, col);
      }
  };
  if (p.operation.accumulate)
    for_each([&](float& d, int row, int col) { sum[static_cast<std::size_t>(row * n + col)] = d; });
  multiply_add(sum.data(), n, p.a.data(), p.b.data(), rows_of_a, n, depth);
  tidy_nans(sum.data(), rows_of_a * n);
  const float poison = __uint_as_float(POISON_F32);
  const auto poisoned = [](const std::vector<char>& x) {
    return std::count(x.begin(), x.end(), 1);
  };
  if (poisoned(p.poison_a) || poisoned(p.poison_b))
    for (int row = 0; row < rows_of_a; ++row)
      for (int col = 0; col < n; ++col)
        if (p.poison_a[static_cast<std::size_t>(row)] || p.poison_b[static_cast<std::size_t>(col)])
          sum[static_cast<std::size_t>(row * n + col)] = poison;
  for_each([&](float& d, int row, int col) { d = sum[static_cast<std::size_t>(row * n + col)]; });
}

}  // namespace fastgemm::emulated
