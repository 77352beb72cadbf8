// Clusters and the registers of warpgroups.
#include "emulator/world.hpp"

namespace fastgemm::emulated {

// The arrival is relaxed: it orders nothing but what fences have made known (mbarrier.cpp).
void World::cluster_sync() {
  Fiber& self = *current_;
  if (self.lane == 0) ++counters_[Op::bar_sync].executed;
  cluster_barrier_.waiting.push_back(&self);
  if (++cluster_barrier_.arrived < agents_.threads()) return wait_at("barrier.cluster");
  cluster_barrier_.arrived = 0;
  ++cluster_syncs_;
  for (Fiber* fiber : cluster_barrier_.waiting)
    if (fiber != &self) wake(*fiber);
  cluster_barrier_.waiting.clear();
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
