// Who knows what of whom: vector clocks, from which the emulator tells whether two accesses to
// shared memory are ordered, whatever order the scheduler happened to take.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace fastgemm::emulated {

// Whatever reads or writes shared memory is an agent of its own: a thread; its cp.async; a warp's
// wgmma; a warp's bulk stores; a CTA's copy engine. An epoch is the moment of one of its accesses:
// a thread's clock goes on with each release, the other agents' with each group of operations.
struct Epoch {
  std::uint32_t clock = 0;
  std::uint16_t agent = none;
  static constexpr std::uint16_t none = 0xffff;
};

// The agents of a cluster, numbered.
class Agents {
 public:
  Agents(int threads, int ctas) : threads_(threads), warps_(threads / 32), ctas_(ctas) {}

  int threads() const { return threads_; }
  int count() const { return 2 * threads_ + 2 * warps_ + ctas_; }
  std::uint16_t copies_of(int thread) const { return number(threads_ + thread); }
  std::uint16_t wgmma_of(int warp) const { return number(2 * threads_ + warp); }
  std::uint16_t bulk_of(int warp) const { return number(2 * threads_ + warps_ + warp); }
  std::uint16_t engine_of(int cta) const { return number(2 * threads_ + 2 * warps_ + cta); }

  bool is_thread(int agent) const { return agent < threads_; }
  bool is_copies(int agent) const { return agent >= threads_ && agent < 2 * threads_; }
  bool is_wgmma(int agent) const { return agent >= wgmma_of(0) && agent < bulk_of(0); }
  bool is_bulk(int agent) const { return agent >= bulk_of(0) && agent < engine_of(0); }

 private:
  static std::uint16_t number(int n) { return static_cast<std::uint16_t>(n); }
  int threads_, warps_, ctas_;
};

// What is known at one moment: of every agent, how far its accesses are ordered before now, and how
// far a fence has made its writes visible to the asynchronous proxy (TMA and wgmma). Shared, never
// changed once it is.
class Clocks {
 public:
  std::uint32_t known(int agent) const { return values_[static_cast<std::size_t>(agent)]; }
  std::uint32_t fenced(int agent) const { return values_[half_ + static_cast<std::size_t>(agent)]; }
  void know(int agent, std::uint32_t clock) { raise(static_cast<std::size_t>(agent), clock); }
  void fence(int agent, std::uint32_t clock) {
    raise(half_ + static_cast<std::size_t>(agent), clock);
  }
  void fence_all_known();
  void join(const Clocks& other);
  bool includes(const Clocks& other) const;

  bool dependent_wait_done = false;  // griddepcontrol.wait: results of the kernel before are there

 private:
  friend class ClockPool;
  friend class ClockRef;
  void raise(std::size_t i, std::uint32_t clock) {
    if (values_[i] < clock) values_[i] = clock;
  }
  std::vector<std::uint32_t> values_;
  std::size_t half_ = 0;
  int references_ = 0;
  class ClockPool* pool_ = nullptr;
};

class ClockRef {
 public:
  ClockRef() = default;
  explicit ClockRef(Clocks* clocks) : clocks_(clocks) { ++clocks->references_; }
  ClockRef(const ClockRef& other) : clocks_(other.clocks_) {
    if (clocks_) ++clocks_->references_;
  }
  ClockRef& operator=(ClockRef other) {
    std::swap(clocks_, other.clocks_);
    return *this;
  }
  ~ClockRef();

  Clocks* get() const { return clocks_; }
  Clocks* operator->() const { return clocks_; }
  const Clocks& operator*() const { return *clocks_; }
  explicit operator bool() const { return clocks_ != nullptr; }
  bool operator==(const ClockRef& o) const { return clocks_ == o.clocks_; }
  bool operator!=(const ClockRef& o) const { return clocks_ != o.clocks_; }

 private:
  Clocks* clocks_ = nullptr;
};

// The clocks of one cluster; outlives all references.
class ClockPool {
 public:
  explicit ClockPool(const Agents& agents) : agents_(agents) {}
  ~ClockPool();
  ClockPool(const ClockPool&) = delete;
  ClockPool& operator=(const ClockPool&) = delete;

  const Agents& agents() const { return agents_; }
  ClockRef fresh();
  ClockRef copy(const Clocks& of);
  // What is known by whoever knows both: one of them where it includes the other.
  ClockRef joined(const ClockRef& a, const ClockRef& b);

 private:
  friend class ClockRef;
  Clocks* take();
  Agents agents_;
  std::vector<Clocks*> all_, free_;
  ClockRef last_a_, last_b_, last_joined_;  // threads of a warp join the same two
};

}  // namespace fastgemm::emulated
