// Loads and stores of shared memory, and what is checked at each: bounds, alignment, order.
#include <algorithm>
#include <cstring>

#include "emulator/world.hpp"

namespace fastgemm::emulated {

bool World::ordered(const Fiber& fiber, Epoch e) const {
  const Clocks& base = *fiber.base;
  if (agents_.is_wgmma(e.agent)) {
    // A warpgroup's: each of its four warps has to have waited for it.
    for (int warp = 0; warp < 4; ++warp) {
      const int agent = e.agent + warp;
      const bool mine = agent == agents_.wgmma_of(fiber.warp->number);
      if (base.known(agent) < e.clock && !(mine && fiber.wgmma_done >= e.clock)) return false;
    }
    return true;
  }
  if (base.known(e.agent) >= e.clock || e.agent == fiber.number) return true;
  if (e.agent == agents_.copies_of(fiber.number)) return fiber.copies_done >= e.clock;
  return e.agent == agents_.bulk_of(fiber.warp->number) && fiber.bulk_done >= e.clock;
}

bool World::visible_to_async(const Fiber& fiber, Epoch e) const {
  if (!agents_.is_thread(e.agent) && !agents_.is_copies(e.agent)) return true;
  if (fiber.base->fenced(e.agent) >= e.clock) return true;
  if (e.agent == fiber.number) return fiber.own_fence >= e.clock;
  return e.agent == agents_.copies_of(fiber.number) && fiber.own_copy_fence >= e.clock;
}

std::string World::describe(Epoch e) const {
  const auto of_cta = [&](int thread) {
    return "thread " + std::to_string(thread % launch_.threads) +
           (launch_.cluster > 1
                ? " of CTA " + std::to_string(
                                   ctas_[static_cast<std::size_t>(thread / launch_.threads)].block)
                : "");
  };
  if (agents_.is_thread(e.agent)) return of_cta(e.agent);
  if (agents_.is_copies(e.agent)) return "cp.async of " + of_cta(e.agent - agents_.copies_of(0));
  if (agents_.is_wgmma(e.agent))
    return "wgmma of the warpgroup of " + of_cta((e.agent - agents_.wgmma_of(0)) * 32);
  if (agents_.is_bulk(e.agent))
    return "the TMA store of the warp of " + of_cta((e.agent - agents_.bulk_of(0)) * 32);
  return "the TMA load of CTA " +
         std::to_string(ctas_[static_cast<std::size_t>(e.agent - agents_.engine_of(0))].block);
}

World::Spot World::locate(const char* instruction, u32 address, int bytes, int alignment,
                          bool remote) {
  const u32 rank = address >> RANK_SHIFT, place = address & ((1u << RANK_SHIFT) - 1);
  if (address % static_cast<u32>(alignment))
    fail("misaligned", instruction, hex(address),
         "the address has to be a multiple of " + std::to_string(alignment));
  if (rank >= ctas_.size() || (!remote && rank != current_->cta->rank))
    fail("out of bounds", instruction, hex(address),
         "the address is in the shared memory of CTA " + std::to_string(rank) +
             " of the cluster, this is CTA " + std::to_string(current_->cta->rank));
  Cta& cta = ctas_[rank];
  if (place < WINDOW ||
      place - WINDOW + static_cast<u32>(bytes) > static_cast<u32>(cta.shared.bytes()))
    fail("out of bounds", instruction, hex(address),
         std::to_string(bytes) + " bytes at offset " +
             std::to_string(static_cast<std::int64_t>(place) - WINDOW) + " of the " +
             std::to_string(cta.shared.bytes()) + " bytes of shared memory");
  return {&cta, place - WINDOW};
}

void World::check_read(const char* instruction, u32 address, const Spot& spot, int bytes,
                       Epoch reader, bool async) {
  const Fiber& self = *current_;
  SharedMemory& shared = spot.cta->shared;
  const auto known = [&](Epoch e) { return ordered(self, e); };
  for (u32 at = spot.offset / 4 * 4; at < spot.offset + static_cast<u32>(bytes); at += 4) {
    Granule& g = shared.granule(at);
    if (g.write.agent == Epoch::none || g.barrier)
      fail("uninitialized", instruction, hex(address + at - spot.offset),
           g.barrier ? "an mbarrier lies here"
                     : "nothing has written shared memory at offset " + std::to_string(at));
    if (!known(g.write))
      fail("race", instruction, hex(address + at - spot.offset),
           "reads what " + describe(g.write) + " writes at offset " + std::to_string(at) +
               " of shared memory, with no wait or barrier in between");
    if (async && !visible_to_async(self, g.write))
      fail("proxy", instruction, hex(address + at - spot.offset),
           "reads through the asynchronous proxy what " + describe(g.write) + " wrote at offset " +
               std::to_string(at) + " of shared memory, with no fence.proxy.async in between");
    shared.add_read(g, reader, known);
  }
}

void World::check_write(const char* instruction, u32 address, const Spot& spot, int bytes,
                        Epoch writer, std::uint32_t origin) {
  const Fiber& self = *current_;
  SharedMemory& shared = spot.cta->shared;
  const auto known = [&](Epoch e) { return ordered(self, e); };
  for (u32 at = spot.offset / 4 * 4; at < spot.offset + static_cast<u32>(bytes); at += 4) {
    Granule& g = shared.granule(at);
    if (g.barrier)
      fail("race", instruction, hex(address + at - spot.offset), "an mbarrier lies here");
    if (g.write.agent != Epoch::none && !known(g.write))
      fail("race", instruction, hex(address + at - spot.offset),
           "overwrites what " + describe(g.write) + " writes at offset " + std::to_string(at) +
               " of shared memory, with no wait or barrier in between");
    if (const Epoch* read = shared.unordered_read(g, known))
      fail("race", instruction, hex(address + at - spot.offset),
           "overwrites offset " + std::to_string(at) + " of shared memory, which " +
               describe(*read) + " may still be reading: no wait or barrier in between");
    shared.set_write(g, writer, origin);
  }
}

void World::ld_shared(u32 address, void* to, int bytes) {
  Fiber& self = *current_;
  const Spot spot = locate("ld.shared", address, bytes, bytes);
  check_read("ld.shared", address, spot, bytes, own(self), false);
  std::memcpy(to, spot.cta->shared.data(spot.offset), static_cast<std::size_t>(bytes));
  self.warp->accesses.add(counters_, Op::ld_shared, self.lane, address, 0, bytes, 0);
}

void World::st_shared(u32 address, const void* from, int bytes) {
  Fiber& self = *current_;
  const Spot spot = locate("st.shared", address, bytes, bytes);
  check_write("st.shared", address, spot, bytes, own(self), self.stage);
  std::memcpy(spot.cta->shared.data(spot.offset), from, static_cast<std::size_t>(bytes));
  self.warp->accesses.add(counters_, Op::st_shared, self.lane, address, 0, bytes, 0);
}

void World::ldmatrix_x4(u32 address, u32* r, bool transposed) {
  Fiber& self = *current_;
  const char* name = transposed ? "ldmatrix.trans" : "ldmatrix";
  const Spot spot = locate(name, address, 16, 16);
  check_read(name, address, spot, 16, own(self), false);
  Warp& warp = *self.warp;
  meet(warp.meeting, warp.lanes, 32, name, spot.cta->shared.data(spot.offset), r, address, [&] {
    const auto row = [&](int matrix, int i) {
      return static_cast<const u16*>(warp.meeting.in[static_cast<std::size_t>(8 * matrix + i)]);
    };
    for (int lane = 0; lane < 32; ++lane)
      for (int m = 0; m < 4; ++m) {
        const int i = lane / 4, j = 2 * (lane % 4);
        const u32 low = transposed ? row(m, j)[i] : row(m, i)[j];
        const u32 high = transposed ? row(m, j + 1)[i] : row(m, i)[j + 1];
        static_cast<u32*>(warp.meeting.out[static_cast<std::size_t>(lane)])[m] = low | high << 16;
      }
    Counts& c = counters_[Op::ldmatrix];
    ++c.executed;
    c.shared_bytes += 512;
    c.wavefronts += wavefronts(warp.meeting.value.data(), 32, 16);
    c.ideal_wavefronts += ideal_wavefronts(32, 16);
  });
}

void World::stmatrix_x4(u32 address, const u32* r, bool transposed) {
  Fiber& self = *current_;
  const char* name = transposed ? "stmatrix.trans" : "stmatrix";
  const Spot spot = locate(name, address, 16, 16);
  check_write(name, address, spot, 16, own(self), 0);
  Warp& warp = *self.warp;
  meet(warp.meeting, warp.lanes, 32, name, r, spot.cta->shared.data(spot.offset), address, [&] {
    const auto row = [&](int matrix, int i) {
      return static_cast<u16*>(warp.meeting.out[static_cast<std::size_t>(8 * matrix + i)]);
    };
    for (int lane = 0; lane < 32; ++lane)
      for (int m = 0; m < 4; ++m) {
        const int i = lane / 4, j = 2 * (lane % 4);
        const u32 pair =
            static_cast<const u32*>(warp.meeting.in[static_cast<std::size_t>(lane)])[m];
        (transposed ? row(m, j)[i] : row(m, i)[j]) = static_cast<u16>(pair);
        (transposed ? row(m, j + 1)[i] : row(m, i)[j + 1]) = static_cast<u16>(pair >> 16);
      }
    Counts& c = counters_[Op::stmatrix];
    ++c.executed;
    c.shared_bytes += 512;
    c.wavefronts += wavefronts(warp.meeting.value.data(), 32, 16);
    c.ideal_wavefronts += ideal_wavefronts(32, 16);
  });
}

void World::cp_async(u32 shared, const void* global, int bytes, int valid_bytes) {
  Fiber& self = *current_;
  if (valid_bytes < 0 || valid_bytes > bytes)
    fail("out of bounds", "cp.async", hex(shared),
         "copies " + std::to_string(valid_bytes) + " of " + std::to_string(bytes) + " bytes");
  const Spot spot = locate("cp.async", shared, bytes, bytes);
  if (reinterpret_cast<std::uintptr_t>(global) % static_cast<std::uintptr_t>(bytes))
    fail("misaligned", "cp.async", hex(reinterpret_cast<std::uintptr_t>(global)),
         "the global address has to be a multiple of " + std::to_string(bytes));
  // An aligned chunk may begin with what lies before a row (device/shifted_rows.cuh), within the
  // array.
  if (valid_bytes) find_array("cp.async", global, valid_bytes, GlobalMemory::Need::last_to_read);
  check_write("cp.async", shared, spot, bytes, {self.copy_group, agents_.copies_of(self.number)},
              0);
  char* to = spot.cta->shared.data(spot.offset);
  std::memset(to, 0, static_cast<std::size_t>(bytes));
  if (valid_bytes) std::memcpy(to, global, static_cast<std::size_t>(valid_bytes));
  self.warp->accesses.add(counters_, Op::cp_async, self.lane, shared,
                          valid_bytes ? reinterpret_cast<std::uintptr_t>(global) : 0, bytes,
                          valid_bytes);
}

void World::cp_async_commit_group() { ++current_->copy_group; }

void World::cp_async_wait_group(int pending) {
  Fiber& self = *current_;
  const std::uint32_t committed = self.copy_group - 1;
  if (committed > static_cast<std::uint32_t>(pending))
    self.copies_done = std::max(self.copies_done, committed - static_cast<std::uint32_t>(pending));
}

}  // namespace fastgemm::emulated
