// Vector clocks: joined, compared and recycled.
#include "emulator/clocks.hpp"

#include <algorithm>

namespace fastgemm::emulated {

void Clocks::fence_all_known() {
  std::copy_n(values_.begin(), half_, values_.begin() + static_cast<std::ptrdiff_t>(half_));
}

void Clocks::join(const Clocks& other) {
  std::uint32_t* to = values_.data();
  const std::uint32_t* from = other.values_.data();
  for (std::size_t i = 0, n = values_.size(); i < n; ++i) to[i] = std::max(to[i], from[i]);
  dependent_wait_done |= other.dependent_wait_done;
}

bool Clocks::includes(const Clocks& other) const {
  const std::uint32_t *mine = values_.data(), *theirs = other.values_.data();
  std::uint32_t missing = other.dependent_wait_done && !dependent_wait_done;
  for (std::size_t i = 0, n = values_.size(); i < n; ++i) missing |= mine[i] < theirs[i] ? 1 : 0;
  return missing == 0;
}

ClockRef::~ClockRef() {
  if (clocks_ && --clocks_->references_ == 0) clocks_->pool_->free_.push_back(clocks_);
}

ClockPool::~ClockPool() {
  last_a_ = last_b_ = last_joined_ = ClockRef();
  for (Clocks* clocks : all_) delete clocks;
}

Clocks* ClockPool::take() {
  if (!free_.empty()) {
    Clocks* clocks = free_.back();
    free_.pop_back();
    return clocks;
  }
  auto* clocks = new Clocks;
  clocks->pool_ = this;
  clocks->half_ = static_cast<std::size_t>(agents_.count());
  clocks->values_.resize(2 * clocks->half_);
  all_.push_back(clocks);
  return clocks;
}

ClockRef ClockPool::fresh() {
  Clocks* clocks = take();
  std::fill(clocks->values_.begin(), clocks->values_.end(), 0);
  clocks->dependent_wait_done = false;
  return ClockRef(clocks);
}

ClockRef ClockPool::copy(const Clocks& of) {
  Clocks* clocks = take();
  clocks->values_ = of.values_;
  clocks->dependent_wait_done = of.dependent_wait_done;
  return ClockRef(clocks);
}

ClockRef ClockPool::joined(const ClockRef& a, const ClockRef& b) {
  if (a == b) return a;
  if (a == last_a_ && b == last_b_) return last_joined_;
  ClockRef result;
  if (a->includes(*b)) {
    result = a;
  } else if (b->includes(*a)) {
    result = b;
  } else {
    result = copy(*a);
    result->join(*b);
  }
  last_a_ = a;
  last_b_ = b;
  last_joined_ = result;
  return result;
}

}  // namespace fastgemm::emulated
