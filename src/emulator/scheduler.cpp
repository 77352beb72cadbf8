// Runs the fibers of a cluster in an order that the seed decides, and says where they stand when
// none can go on.
#include <algorithm>
#include <cstdio>

#include "emulator/world.hpp"

namespace fastgemm::emulated {

std::string hex(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

World::World(const Launch& launch, Stacks& stacks)
    : launch_(launch),
      stacks_(stacks),
      agents_(launch.threads * launch.cluster, launch.cluster),
      clocks_(agents_),
      fibers_(static_cast<std::size_t>(agents_.threads())),
      warps_(static_cast<std::size_t>(agents_.threads() / 32)),
      warpgroups_(static_cast<std::size_t>((agents_.threads() + 127) / 128)),
      ctas_(static_cast<std::size_t>(launch.cluster)) {}

std::uint64_t World::random() {
  // SplitMix64.
  std::uint64_t x = random_state_ += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

void World::reset(std::uint32_t cluster) {
  constexpr int all_registers = 65536;
  const int threads = launch_.threads;
  random_state_ = launch_.seed * 0x2545f4914f6cdd1du + cluster;
  const ClockRef nothing_known = clocks_.fresh();
  nothing_known->dependent_wait_done = !launch_.early_start;
  const int registers = std::min(all_registers / threads / 8 * 8, 255);
  for (std::size_t rank = 0; rank < ctas_.size(); ++rank) {
    Cta& cta = ctas_[rank];
    cta = Cta();
    cta.block =
        cluster * static_cast<std::uint32_t>(launch_.cluster) + static_cast<std::uint32_t>(rank);
    cta.rank = static_cast<std::uint32_t>(rank);
    cta.shared.reset(launch_.shared_bytes);
    cta.threads_left = threads;
  }
  std::fill(warpgroups_.begin(), warpgroups_.end(), Warpgroup());
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    Warp& warp = warps_[w];
    warp = Warp();
    warp.number = static_cast<int>(w);
    warp.cta = &ctas_[w * 32 / static_cast<std::size_t>(threads)];
    warp.warpgroup = &warpgroups_[w / 4];
    warp.lanes = &fibers_[w * 32];
    warp.ready = 0xffffffff;
    warp.registers = registers;
  }
  for (std::size_t i = 0; i < fibers_.size(); ++i) {
    Fiber& fiber = fibers_[i];
    fiber = Fiber();
    fiber.machine = this;
    fiber.number = static_cast<int>(i);
    fiber.thread_index = fiber.number % threads;
    fiber.lane = fiber.number % 32;
    fiber.warp = &warps_[i / 32];
    fiber.cta = fiber.warp->cta;
    fiber.block_index = fiber.cta->block;
    fiber.grid_size = launch_.ctas;
    fiber.cluster_rank = fiber.cta->rank;
    fiber.shared_window = in_cta(WINDOW, fiber.cta->rank);
    fiber.base = nothing_known;
    fiber.context.start(stacks_.at(fiber.number), Stacks::bytes(fiber.number), &World::begin,
                        &fiber);
  }
  cluster_phase_ = 0;
  cluster_arrived_ = 0;
  waiting_for_cluster_.clear();
  ready_warps_ = warps_.size() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << warps_.size()) - 1;
  fibers_left_ = static_cast<int>(fibers_.size());
}

void World::run(std::uint32_t cluster) {
  reset(cluster);
  running_ = launch_.entry->running();
  current_ = nullptr;
  current_ = next_ready();
  *running_ = current_;
  Context::go(outside_, current_->context);
  *running_ = nullptr;
  for (Warp& warp : warps_) warp.accesses.flush(counters_);
  if (error_) throw *std::exchange(error_, {});
}

void World::begin(void* argument) {
  Fiber& fiber = *static_cast<Fiber*>(argument);
  World& world = static_cast<World&>(*fiber.machine);
  world.launch_.entry->call(world.launch_.arguments);
  world.finish_thread();
}

void World::finish_thread() {
  Fiber& self = *current_;
  if (self.bulk_group - 1 > self.bulk_done || self.bulk_open)
    fail("race", "exit", "",
         "ends while the copy engine may still read its shared memory: "
         "cp.async.bulk.wait_group.read is missing");
  if (self.lane == 0 && !self.warp->warpgroup->pending.empty())
    fail("race", "exit", "", "ends with products of wgmma that it has not waited for");
  self.done = true;
  --self.cta->threads_left;
  --fibers_left_;
  self.warp->ready &= ~(1u << self.lane);
  if (!self.warp->ready) ready_warps_ &= ~(std::uint64_t{1} << self.warp->number);
  if (fibers_left_ == 0) Context::go(self.context, outside_);
  switch_away();
}

void World::wait_at(const char* instruction, std::uint32_t on) {
  Fiber& self = *current_;
  self.waits_at = instruction;
  self.waits_on = on;
  self.warp->ready &= ~(1u << self.lane);
  if (!self.warp->ready) ready_warps_ &= ~(std::uint64_t{1} << self.warp->number);
  switch_away();
  self.waits_at = nullptr;
}

void World::wake(Fiber& fiber) {
  fiber.warp->ready |= 1u << fiber.lane;
  ready_warps_ |= std::uint64_t{1} << fiber.warp->number;
}

// Stays with a warp while it has threads that can run: they meet soon. Then any warp.
Fiber* World::next_ready() {
  Warp* warp = current_ ? current_->warp : nullptr;
  if (!warp || !warp->ready) {
    if (!ready_warps_) return nullptr;
    const std::uint64_t chance = random();
    const int from = static_cast<int>(chance % 64);
    const std::uint64_t turned =
        from ? ready_warps_ >> from | ready_warps_ << (64 - from) : ready_warps_;
    warp = &warps_[static_cast<std::size_t>((__builtin_ctzll(turned) + from) % 64)];
    rotation_ = static_cast<int>(chance >> 32 & 31);
  }
  const std::uint32_t turned =
      rotation_ ? warp->ready >> rotation_ | warp->ready << (32 - rotation_) : warp->ready;
  return warp->lanes + (__builtin_ctz(turned) + rotation_) % 32;
}

void World::switch_away() {
  Fiber& self = *current_;
  Fiber* next = next_ready();
  if (!next) fail_deadlock();
  if (next == &self) return;
  current_ = next;
  *running_ = next;
  Context::go(self.context, next->context);
}

void World::fail(const char* kind, const std::string& instruction, const std::string& address,
                 const std::string& message) {
  Fiber& self = *current_;
  EmulatorError::Place place;
  place.kind = kind;
  place.kernel = launch_.kernel;
  place.instruction = instruction;
  place.address = address;
  place.cta = self.cta->block;
  place.thread = self.thread_index;
  const std::string what = place.kind + " in " + place.kernel + ", CTA " +
                           std::to_string(place.cta) + ", thread " + std::to_string(place.thread) +
                           ", " + instruction + (address.empty() ? "" : " at " + address) + ": " +
                           message;
  error_.emplace(what, place);
  Context::go(self.context, outside_);
  __builtin_unreachable();
}

// The barrier that a thread waits at, and what that still lacks.
std::string World::missing_at(const Fiber& fiber) const {
  const std::string instruction = fiber.waits_at ? fiber.waits_at : "";
  if (instruction == "bar.sync") {
    const NamedBarrier& barrier = fiber.cta->barriers[fiber.waits_on];
    return " " + std::to_string(fiber.waits_on) + ", where " + std::to_string(barrier.arrived) +
           " of " + std::to_string(barrier.expected) + " threads are";
  }
  if (!fiber.waits_on) return {};
  const u32 place = fiber.waits_on & ((1u << RANK_SHIFT) - 1);
  const Mbarrier& barrier = fiber.cta->mbarriers.at(place - WINDOW);
  return " at " + hex(fiber.waits_on) + ", whose phase " + std::to_string(barrier.phase) +
         " lacks " + std::to_string(barrier.pending) + " arrivals and " +
         std::to_string(barrier.bytes) + " bytes";
}

void World::fail_deadlock() {
  // The same place of neighbouring threads is said once.
  std::string where;
  for (std::size_t i = 0; i < fibers_.size();) {
    const Fiber& first = fibers_[i];
    std::size_t end = i + 1;
    const auto same = [&](const Fiber& f) {
      return f.cta == first.cta && f.done == first.done && f.waits_at == first.waits_at &&
             f.waits_on == first.waits_on;
    };
    while (end < fibers_.size() && same(fibers_[end])) ++end;
    where += (where.empty() ? "" : "; ") + std::string("CTA ") + std::to_string(first.cta->block) +
             " threads " + std::to_string(first.thread_index) + ".." +
             std::to_string(fibers_[end - 1].thread_index);
    if (first.done) {
      where += " have ended";
    } else {
      where += std::string(" wait at ") + (first.waits_at ? first.waits_at : "?");
      where += missing_at(first);
    }
    i = end;
  }
  fail("deadlock", current_->waits_at ? current_->waits_at : "exit",
       current_->waits_on ? hex(current_->waits_on) : "", "no thread can go on: " + where);
}

}  // namespace fastgemm::emulated
