// The Tensor Memory Accelerator: copies of boxes between global memory and swizzled shared memory.
#include <algorithm>
#include <cstring>

#include "emulator/swizzle.hpp"
#include "emulator/world.hpp"

namespace fastgemm::emulated {
namespace {

struct BoxRow {
  std::int64_t first, count;  // elements of the row that exist: [first, first + count)
  const char* global;         // of element 0 of the row
};

// The rows of the box at `at`, in the order in which they lie in shared memory.
template <class Body>
void for_each_row(const TensorBox& box, const int (&at)[4], Body body) {
  int row = 0;
  for (int w = 0; w < box.box[3]; ++w)
    for (int z = 0; z < box.box[2]; ++z)
      for (int y = 0; y < box.box[1]; ++y, ++row) {
        const std::int64_t index[4] = {at[0], std::int64_t{at[1]} + y, std::int64_t{at[2]} + z,
                                       std::int64_t{at[3]} + w};
        BoxRow r{0, box.box[0], box.data + index[0] * box.element_bytes};
        for (int i = 1; i < 4; ++i) {
          r.global += index[i] * box.stride_bytes[i - 1];
          if (index[i] < 0 || index[i] >= box.extent[i]) r.count = 0;
        }
        r.first = std::max<std::int64_t>(0, -index[0]);
        const std::int64_t end = std::min<std::int64_t>(box.box[0], box.extent[0] - index[0]);
        r.count = r.count ? std::max<std::int64_t>(0, end - r.first) : 0;
        body(row, r);
      }
}

// In shared memory: rows are as far apart as the swizzle is wide, also where the box is narrower.
int bytes_of(const TensorBox& box) {
  return box.box[1] * box.box[2] * box.box[3] * box.swizzle_bytes;
}

int row_bytes_of(const TensorBox& box) { return box.box[0] * box.element_bytes; }

// Of row `row` of a box at `shared`.
u32 chunk_address(const TensorBox& box, u32 shared, int row, int chunk) {
  return swizzled(shared + static_cast<u32>(row * box.swizzle_bytes + chunk * 16),
                  box.swizzle_bytes);
}

// The passes of one box's rows over shared memory, and those that its bytes need.
void count_passes(Counts& counts, const TensorBox& box, u32 shared) {
  const int rows = box.box[1] * box.box[2] * box.box[3], chunks = row_bytes_of(box) / 16;
  for (int row = 0; row < rows; ++row) {
    u32 addresses[8];  // a row is 128 bytes at most
    for (int i = 0; i < chunks; ++i) addresses[i] = chunk_address(box, shared, row, i);
    counts.wavefronts += wavefronts(addresses, chunks, 16);
  }
  counts.ideal_wavefronts += ideal_wavefronts(rows * chunks, 16);
}

}  // namespace

const TensorBox& World::find_box(const char* instruction, const void* map, const int (&at)[4]) {
  const auto* box = static_cast<const TensorBox*>(map);
  if (reinterpret_cast<std::uintptr_t>(map) % 64 || box->magic != TENSOR_BOX_MAGIC)
    fail("out of bounds", instruction, hex(reinterpret_cast<std::uintptr_t>(map)),
         "there is no tensor map here");
  // The copy engine takes no other boxes: an H200 ends the kernel with an illegal instruction.
  const std::int64_t offset = std::int64_t{at[0]} * box->element_bytes;
  if (offset % 16 != 0)
    fail("misaligned", instruction, hex(reinterpret_cast<std::uintptr_t>(box->data + offset)),
         "the box begins " + std::to_string(offset) +
             " bytes into a row, which has to be a multiple of 16");
  return *box;
}

void World::tma_load(u32 shared, const void* map, u32 barrier, const int (&at)[4], u32 ctas) {
  Fiber& self = *current_;
  const TensorBox& box = find_box("TMA load", map, at);
  const Epoch engine{++self.cta->engine_clock, agents_.engine_of(static_cast<int>(self.cta->rank))};
  if (!ctas) {
    load_box(box, shared, barrier, at, engine);
  } else {
    if (ctas >> launch_.cluster)
      fail("out of bounds", "TMA load", hex(shared),
           "multicast to the CTAs " + hex(ctas) + " of a cluster of " +
               std::to_string(launch_.cluster));
    for (u32 rank = 0; rank < static_cast<u32>(launch_.cluster); ++rank)
      if (ctas >> rank & 1) load_box(box, in_cta(shared, rank), in_cta(barrier, rank), at, engine);
  }
  Counts& c = counters_[Op::tma_load];
  ++c.executed;
  for_each_row(box, at, [&](int, const BoxRow& row) {
    c.global_bytes += row.count * box.element_bytes;
    if (row.count)
      c.sectors +=
          (row.count * box.element_bytes +
           reinterpret_cast<std::intptr_t>(row.global + row.first * box.element_bytes) % 32 + 31) /
          32;
  });
}

// Into one CTA of the cluster. What the box has outside of the tensor is zero, and counts.
void World::load_box(const TensorBox& box, u32 shared, u32 barrier, const int (&at)[4],
                     Epoch engine) {
  constexpr const char* name = "TMA load";
  const int bytes = bytes_of(box), row_bytes = row_bytes_of(box);
  if (row_bytes != box.swizzle_bytes)
    fail("emulator", name, hex(shared), "loads of boxes narrower than their swizzle: not emulated");
  const Spot spot = locate(name, shared, bytes, 128, true);
  Spot barrier_spot;
  Mbarrier& counts_at = find_mbarrier(name, barrier, barrier_spot, true);
  if (barrier_spot.cta != spot.cta)
    fail("mbarrier", name, hex(barrier), "bytes and barrier are in different CTAs");
  const u32 origin = origin_of(barrier_spot.offset, counts_at.phase);
  for_each_row(box, at, [&](int row, const BoxRow& r) {
    const char* from = r.global + r.first * box.element_bytes;
    const auto existing = static_cast<int>(r.count * box.element_bytes);
    if (existing) find_array(name, from, existing, GlobalMemory::Need::all_to_read);
    std::vector<char> line(static_cast<std::size_t>(row_bytes), 0);
    if (existing)
      std::memcpy(line.data() + r.first * box.element_bytes, from,
                  static_cast<std::size_t>(existing));
    for (int chunk = 0; chunk < row_bytes; chunk += 16) {
      const u32 to = chunk_address(box, shared, row, chunk / 16);
      const Spot chunk_spot = locate(name, to, 16, 16, true);
      check_write(name, to, chunk_spot, 16, engine, origin);
      std::memcpy(chunk_spot.cta->shared.data(chunk_spot.offset), line.data() + chunk, 16);
    }
  });
  counters_[Op::tma_load].shared_bytes += bytes;
  count_passes(counters_[Op::tma_load], box, shared);
  complete_bytes(counts_at, engine, bytes);
}

void World::tma_prefetch(const void* map, const int (&at)[4]) { find_box("TMA prefetch", map, at); }

void World::tma_store(const void* map, u32 shared, const int (&at)[4]) {
  constexpr const char* name = "TMA store";
  Fiber& self = *current_;
  Warp& warp = *self.warp;
  if (warp.bulk_owner_known && warp.bulk_owner != self.lane)
    fail("emulator", name, hex(shared), "two threads of a warp store: that is not emulated");
  warp.bulk_owner_known = true;
  warp.bulk_owner = self.lane;
  self.bulk_open = true;
  const TensorBox& box = find_box(name, map, at);
  const int row_bytes = row_bytes_of(box);
  locate(name, shared, bytes_of(box), 128);
  const Epoch reader{self.bulk_group, agents_.bulk_of(warp.number)};
  Counts& c = counters_[Op::tma_store];
  ++c.executed;
  count_passes(c, box, shared);
  for_each_row(box, at, [&](int row, const BoxRow& r) {
    std::vector<char> line(static_cast<std::size_t>(row_bytes));
    c.shared_bytes += row_bytes;
    for (int chunk = 0; chunk < row_bytes; chunk += 16) {
      const u32 from = chunk_address(box, shared, row, chunk / 16);
      const Spot spot = locate(name, from, 16, 16);
      check_read(name, from, spot, 16, reader, true);
      std::memcpy(line.data() + chunk, spot.cta->shared.data(spot.offset), 16);
    }
    const auto existing = static_cast<int>(r.count * box.element_bytes);
    if (!existing) return;
    store_elements(name, const_cast<char*>(r.global) + r.first * box.element_bytes,
                   line.data() + r.first * box.element_bytes, existing);
    c.global_bytes += existing;
    c.sectors += (existing + reinterpret_cast<std::intptr_t>(r.global) % 32 + 31) / 32;
  });
}

void World::bulk_commit_group() {
  ++current_->bulk_group;
  current_->bulk_open = false;
}

void World::bulk_wait_group_read(int pending) {
  Fiber& self = *current_;
  const std::uint32_t committed = self.bulk_group - 1;
  if (committed > static_cast<std::uint32_t>(pending))
    self.bulk_done = std::max(self.bulk_done, committed - static_cast<std::uint32_t>(pending));
}

// What this thread knows of, written by itself or by others before, is visible from now on.
void World::fence_proxy_async() {
  Fiber& self = *current_;
  self.base = clocks_.copy(*self.base);
  self.base->fence_all_known();
  self.own_fence = self.clock++;
  self.own_copy_fence = self.copies_done;
}

}  // namespace fastgemm::emulated
