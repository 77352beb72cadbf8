// mbarriers: phases of arrivals and announced bytes, and what completing one lets others know.
#include <algorithm>

#include "emulator/world.hpp"

namespace fastgemm::emulated {

Mbarrier& World::find_mbarrier(const char* instruction, u32 address, Spot& spot, bool by_engine) {
  const Fiber& self = *current_;
  spot = locate(instruction, address, 8, 8, true);
  const auto found = spot.cta->mbarriers.find(spot.offset);
  if (found == spot.cta->mbarriers.end())
    fail("mbarrier", instruction, hex(address), "there is no initialised mbarrier here");
  Mbarrier& barrier = found->second;
  const bool remote = spot.cta != self.cta;
  if (remote && spot.cta->threads_left == 0)
    fail("race", instruction, hex(address),
         "CTA " + std::to_string(spot.cta->block) + ", whose barrier this is, has ended");
  // Others of the cluster learn of it by the fence and a barrier of the cluster behind it.
  const bool by_fence = barrier.fenced && self.cluster_waits > barrier.fenced_before;
  if (!ordered(self, barrier.made) && !by_fence)
    fail("race", instruction, hex(address),
         describe(barrier.made) + " initialises this mbarrier, with no barrier in between");
  if ((remote || by_engine) && !barrier.fenced)
    fail("proxy", instruction, hex(address),
         "the mbarrier was initialised with no fence.mbarrier_init behind it");
  return barrier;
}

void World::complete_phase_if_due(Mbarrier& barrier) {
  if (barrier.pending || barrier.bytes) return;
  barrier.completed = barrier.arriving.merged;
  barrier.arriving = Gathering();
  barrier.pending = barrier.expected;
  ++barrier.phase;
  for (Fiber* fiber : barrier.waiting) wake(*fiber);
  barrier.waiting.clear();
}

// The copy engine, or a store on its way, has brought `bytes`: who waits for the phase comes after.
void World::complete_bytes(Mbarrier& barrier, Epoch writer, int bytes) {
  barrier.bytes -= bytes;
  if (!barrier.arriving.merged) barrier.arriving.merged = clocks_.fresh();
  barrier.arriving.merged->know(writer.agent, writer.clock);
  complete_phase_if_due(barrier);
}

void World::mbarrier_init(u32 address, u32 arrivals) {
  Fiber& self = *current_;
  const Spot spot = locate("mbarrier.init", address, 8, 8);
  if (arrivals == 0 || arrivals >= 1u << 20)
    fail("mbarrier", "mbarrier.init", hex(address),
         std::to_string(arrivals) + " arrivals: there have to be 1 to 2^20 - 1");
  check_write("mbarrier.init", address, spot, 8, own(self), 0);
  for (u32 at = 0; at < 8; at += 4) spot.cta->shared.granule(spot.offset + at).barrier = true;
  Mbarrier& barrier = spot.cta->mbarriers[spot.offset];
  barrier = Mbarrier();
  barrier.expected = barrier.pending = arrivals;
  barrier.made = own(self);
  spot.cta->unfenced_barriers.push_back(spot.offset);
}

void World::fence_mbarrier_init() {
  Cta& cta = *current_->cta;
  auto& open = cta.unfenced_barriers;
  for (const u32 offset : open) {
    Mbarrier& barrier = cta.mbarriers[offset];
    if (barrier.made.agent != current_->number) continue;
    barrier.fenced = true;
    barrier.fenced_before = current_->cluster_arrivals;
  }
  open.erase(std::remove_if(open.begin(), open.end(),
                            [&](u32 offset) { return cta.mbarriers[offset].fenced; }),
             open.end());
}

void World::mbarrier_arrive(u32 address, u32 expected_bytes) {
  Spot spot;
  Mbarrier& barrier = find_mbarrier("mbarrier.arrive", address, spot, false);
  if (barrier.pending == 0)
    fail("mbarrier", "mbarrier.arrive", hex(address),
         "more arrivals than the " + std::to_string(barrier.expected) + " that a phase expects");
  gather(barrier.arriving);
  barrier.bytes += expected_bytes;
  --barrier.pending;
  complete_phase_if_due(barrier);
}

void World::mbarrier_wait(u32 address, u32 parity) {
  Fiber& self = *current_;
  Spot spot;
  Mbarrier& barrier = find_mbarrier("mbarrier.try_wait", address, spot, false);
  if (spot.cta != self.cta)
    fail("mbarrier", "mbarrier.try_wait", hex(address), "waits at another CTA's barrier");
  if (self.lane == 0) ++counters_[Op::mbarrier_wait].executed;
  // Phases take turns: of the parity waited for, either the current one is under way or it is over.
  while ((barrier.phase & 1) == (parity & 1)) {
    barrier.waiting.push_back(&self);
    wait_at("mbarrier.try_wait", address);
  }
  learn(self, barrier.completed);
  self.stage = origin_of(spot.offset, barrier.phase);
}

}  // namespace fastgemm::emulated
