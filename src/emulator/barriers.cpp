// Barriers of CTAs and warps: who has arrived knows afterwards what all have done before.
#include <algorithm>

#include "emulator/world.hpp"

namespace fastgemm::emulated {

// The running thread releases: whoever learns what is gathered comes after all it did until now.
void World::gather(Gathering& gathering) {
  Fiber& self = *current_;
  if (!gathering.merged) {
    gathering.merged = clocks_.copy(*self.base);
  } else if (gathering.last != self.base) {
    gathering.merged->join(*self.base);
  }
  gathering.last = self.base;
  Clocks& merged = *gathering.merged.get();
  merged.know(self.number, self.clock);
  merged.know(agents_.copies_of(self.number), self.copies_done);
  merged.know(agents_.wgmma_of(self.warp->number), self.wgmma_done);
  merged.know(agents_.bulk_of(self.warp->number), self.bulk_done);
  merged.fence(self.number, self.own_fence);
  merged.fence(agents_.copies_of(self.number), self.own_copy_fence);
  merged.dependent_wait_done |= self.dependent_wait_done;
  ++self.clock;
}

void World::learn(Fiber& fiber, const ClockRef& knowledge) {
  if (knowledge) fiber.base = clocks_.joined(fiber.base, knowledge);
}

void World::arrive(NamedBarrier& barrier, int expected, const std::string& name) {
  if (barrier.arrived == 0) barrier.expected = expected;
  if (barrier.expected != expected)
    fail("barrier", name, "",
         "counts " + std::to_string(expected) + " threads where others at it count " +
             std::to_string(barrier.expected));
  gather(barrier.knowledge);
  ++barrier.arrived;
}

void World::complete(NamedBarrier& barrier) {
  for (Fiber* fiber : barrier.waiting) {
    learn(*fiber, barrier.knowledge.merged);
    wake(*fiber);
  }
  barrier.waiting.clear();
  barrier.arrived = 0;
  barrier.knowledge = Gathering();
}

void World::bar_sync(int id, int threads) {
  Fiber& self = *current_;
  const int expected = threads ? threads : launch_.threads;
  if (id < 0 || id > 15 || expected % 32 || expected > launch_.threads)
    fail("barrier", "bar.sync", "",
         "barrier " + std::to_string(id) + " of " + std::to_string(expected) +
             " threads: there are barriers 0 to 15, and threads come in whole warps");
  if (self.lane == 0) ++counters_[Op::bar_sync].executed;
  NamedBarrier& barrier = self.cta->barriers[static_cast<std::size_t>(id)];
  arrive(barrier, expected, "bar.sync");
  barrier.waiting.push_back(&self);
  if (barrier.arrived < expected) return wait_at("bar.sync", static_cast<std::uint32_t>(id));
  for (Fiber* fiber : barrier.waiting) fiber->warp->accesses.flush(counters_);
  complete(barrier);
}

void World::bar_arrive(int id, int threads) {
  NamedBarrier& barrier = current_->cta->barriers[static_cast<std::size_t>(id)];
  arrive(barrier, threads, "bar.arrive");
  if (barrier.arrived == threads) complete(barrier);
}

void World::bar_warp_sync() {
  Fiber& self = *current_;
  NamedBarrier& barrier = self.warp->sync;
  arrive(barrier, 32, "bar.warp.sync");
  barrier.waiting.push_back(&self);
  if (barrier.arrived < 32) return wait_at("bar.warp.sync");
  self.warp->accesses.flush(counters_);
  complete(barrier);
}

}  // namespace fastgemm::emulated
