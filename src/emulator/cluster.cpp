// Clusters: their barrier, stores to each other; and the registers of warpgroups.
#include <cstring>

#include "emulator/world.hpp"

namespace fastgemm::emulated {

// The arrival is relaxed: it orders nothing but what fences have made known (mbarrier.cpp).
void World::cluster_arrive() {
  Fiber& self = *current_;
  if (self.cluster_arrivals > self.cluster_waits)
    fail("barrier", "barrier.cluster.arrive", "", "arrives again without having waited");
  if (self.lane == 0) ++counters_[Op::bar_sync].executed;
  ++self.cluster_arrivals;
  if (++cluster_arrived_ < agents_.threads()) return;
  cluster_arrived_ = 0;
  ++cluster_phase_;
  for (Fiber* fiber : waiting_for_cluster_) wake(*fiber);
  waiting_for_cluster_.clear();
}

void World::cluster_wait() {
  Fiber& self = *current_;
  if (self.cluster_arrivals == self.cluster_waits)
    fail("barrier", "barrier.cluster.wait", "", "waits without having arrived");
  while (cluster_phase_ < self.cluster_arrivals) {
    waiting_for_cluster_.push_back(&self);
    wait_at("barrier.cluster.wait");
  }
  ++self.cluster_waits;
}

// Into the shared memory of any CTA of the cluster; its bytes count at a barrier beside them.
void World::st_async(u32 shared, u32 barrier, const void* from, int bytes) {
  constexpr const char* name = "st.async";
  Fiber& self = *current_;
  const Spot spot = locate(name, shared, bytes, bytes, true);
  Spot barrier_spot;
  Mbarrier& counts_at = find_mbarrier(name, barrier, barrier_spot, false);
  if (barrier_spot.cta != spot.cta)
    fail("mbarrier", name, hex(barrier), "bytes and barrier are in different CTAs");
  const Epoch writer{++self.cta->engine_clock, agents_.engine_of(static_cast<int>(self.cta->rank))};
  check_write(name, shared, spot, bytes, writer, 0);
  std::memcpy(spot.cta->shared.data(spot.offset), from, static_cast<std::size_t>(bytes));
  self.warp->accesses.add(counters_, Op::st_async, self.lane, shared, 0, bytes, 0);
  complete_bytes(counts_at, writer, bytes);
}

// Registers go back to the CTA's pool or come out of it; who takes more waits until they are there.
void World::setmaxnreg(int registers, bool increase) {
  Fiber& self = *current_;
  Warp& warp = *self.warp;
  const char* name = increase ? "setmaxnreg.inc" : "setmaxnreg.dec";
  if (registers < 24 || registers > 256 || registers % 8)
    fail("registers", name, "",
         std::to_string(registers) + " registers: a multiple of 8 from 24 to 256 is needed");
  bool done = false;
  const auto take = [&] {
    const int needed = (registers - warp.registers) * 32;
    if (needed > self.cta->free_registers) return false;
    self.cta->free_registers -= needed;
    warp.registers = registers;
    for (Fiber* fiber : self.cta->waiting_for_registers) wake(*fiber);
    self.cta->waiting_for_registers.clear();
    return true;
  };
  meet(warp.meeting, warp.lanes, 32, name, nullptr, nullptr, static_cast<u32>(registers), [&] {
    if (increase ? registers < warp.registers : registers > warp.registers)
      fail("registers", name, "",
           "from " + std::to_string(warp.registers) + " to " + std::to_string(registers));
    done = take();
    while (!done) {
      self.cta->waiting_for_registers.push_back(&self);
      wait_at(name);
      done = take();
    }
  });
}

}  // namespace fastgemm::emulated
